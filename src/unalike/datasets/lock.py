"""A lock between processes, let go by the system even if its holder is killed."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unalike.errors import UserError


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Be the only process that works on `path`; others wait."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise UserError(f"Cannot write {lock.parent}: {error.strerror}.") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
