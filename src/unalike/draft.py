"""A graph folder being written: it takes its name only when it is whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

import numpy as np

from unalike.errors import UserError
from unalike.version import __version__

FORMAT = 1
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS)


@dataclass
class Draft:
    """A hidden folder beside the final one, filled array by array, then renamed."""

    final: Path
    folder: Path
    names: list[str] = field(default_factory=list)
    links: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, array: np.ndarray) -> None:
        """Write one array."""
        self.names.append(name)
        with (self.folder / f"{name}.npy").open("wb") as file:
            _write_header(file, array.dtype, array.shape)
            # Not np.save: its error for a full disk does not say what is wrong.
            file.write(np.ascontiguousarray(array).data)

    def reserve(self, name: str, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Make room for one array and map it, to be filled in place."""
        self.names.append(name)
        if 0 in shape:
            np.save(self.folder / f"{name}.npy", np.zeros(shape, dtype))
            return np.zeros(shape, dtype)
        path = self.folder / f"{name}.npy"
        array = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
        with path.open("r+b") as file:
            # Claim the blocks now: a full disk must not end in SIGBUS later.
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return array

    @contextmanager
    def appending(self, name: str, dtype: Any) -> Iterator[Callable[[Any], None]]:
        """Write one flat array piece by piece; its length need not be known."""
        self.names.append(name)
        length = 0

        def append(piece: np.ndarray) -> None:
            nonlocal length
            file.write(np.ascontiguousarray(piece, dtype).data)
            length += len(piece)

        with (self.folder / f"{name}.npy").open("wb") as file:
            _write_header(file, dtype, (0,))
            yield append
            # Numpy pads headers, so that a longer length fits into the same bytes.
            file.seek(0)
            _write_header(file, dtype, (length,))

    def link(self, name: str, path: Path, facts: dict[str, Any]) -> None:
        """Take over an array of another folder, with what is known of it, uncopied."""
        self.links[name] = facts
        own = self.folder / f"{name}.npy"
        try:
            own.hardlink_to(path)
        except OSError:
            own.symlink_to(path.absolute())

    def scratch(self, name: str) -> Path:
        """A path for a temporary file; it is gone when the draft is done."""
        path = self.folder / "scratch"
        path.mkdir(exist_ok=True)
        return path / name

    def discard_scratch(self) -> None:
        """Remove the temporary files."""
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)

    def commit(self, about: dict[str, Any]) -> None:
        """Describe what was written, make it durable, and give it its name."""
        self.discard_scratch()
        arrays = {name: self._seal(name) for name in self.names}
        told = {"format": FORMAT, "unalike": __version__, **about}
        told["arrays"] = arrays | self.links
        text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        with (self.folder / "graph.json").open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self.folder.rename(self.final)

    def _seal(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.npy"
        array = np.load(path, mmap_mode=None if path.stat().st_size < 4096 else "r")
        with path.open("r+b") as file:
            digest = file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        return {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "bytes": path.stat().st_size,
            "sha256": digest,
        }


def _write_header(file: IO[bytes], dtype: Any, shape: tuple[int, ...]) -> None:
    facts = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(file, facts)


@contextmanager
def drafting(folder: Path) -> Iterator[Draft]:
    """Write a graph folder; whatever goes wrong, nothing is left behind."""
    folder = Path(folder).absolute()
    if folder.exists():
        raise UserError(f"{folder} exists already; name another folder or remove it.")
    _sweep(folder)
    hidden = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    missing = [parent for parent in hidden.parents if not parent.exists()]
    try:
        hidden.mkdir(parents=True)
        yield Draft(folder, hidden)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise UserError(f"Cannot write {folder}: {error.strerror}.") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        with suppress(OSError):
            for parent in missing:
                parent.rmdir()


def _sweep(folder: Path) -> None:
    """Remove drafts of the same folder whose writers were killed."""
    for draft in folder.parent.glob(f".{folder.name}.*.draft"):
        writer = draft.name.split(".")[-2]
        alive = False
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(writer), 0)
            alive = True
        if not alive:
            shutil.rmtree(draft, ignore_errors=True)
