"""Part: a download on its way, beside the place where the whole file will be."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Part:
    """The bytes so far, and a note of where they came from."""

    target: Path

    @property
    def path(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part")

    @property
    def note(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def origin(self) -> dict[str, Any]:
        """The address and version that the bytes so far belong to."""
        try:
            told = json.loads(self.note.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    def begin(self, address: str, version: str) -> None:
        """Forget the bytes so far and note where the next ones come from."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self.note.write_text(json.dumps({"address": address, "version": version}))
        self.path.touch()

    def discard(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the whole file its name, at once and for good."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        self.note.unlink(missing_ok=True)
