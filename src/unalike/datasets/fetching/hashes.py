"""hashes.json: the first checksums a data root saw, to hold later files against."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from unalike.datasets.checksum import Checksum
from unalike.datasets.lock import alone
from unalike.errors import UserError

FILE = "hashes.json"


def remembered(root: Path) -> dict[str, Checksum]:
    """The checksums that were noted in a data root, by path."""
    path = root / FILE
    try:
        told = json.loads(path.read_text("utf-8"))
        return {name: Checksum(**facts) for name, facts in told.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged; remove it to start anew.") from None


def remember(root: Path, name: str, checksum: Checksum) -> None:
    """Note the checksum of a file, beside those of other files."""
    path = root / FILE
    with alone(path):
        known = {**remembered(root), name: checksum}
        text = {key: asdict(value) for key, value in sorted(known.items())}
        fresh = path.with_name(f".{FILE}.{os.getpid()}")
        fresh.write_text(json.dumps(text, indent=1) + "\n", "utf-8")
        fresh.replace(path)
