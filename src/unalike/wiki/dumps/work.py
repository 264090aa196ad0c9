"""Work: stages whose results are kept on disk, so that no finished one is repeated."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.wiki.dumps.files import DumpFiles


@dataclass(frozen=True)
class Work:
    """A folder with one folder for each finished stage."""

    folder: Path

    @classmethod
    def open(cls, out: Path, files: DumpFiles) -> Work:
        """The work of an earlier try, if it was on the very same files."""
        folder = out.with_name(f".{out.name}.dumps")
        paths = [*files.tables.values(), *files.views]
        told = json.dumps(
            {
                str(path.absolute()): [path.stat().st_size, path.stat().st_mtime_ns]
                for path in paths
            },
            indent=1,
        )
        note = folder / "files.json"
        if not note.exists() or note.read_text("utf-8") != told:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            note.write_text(told, "utf-8")
        return cls(folder)

    def has(self, name: str) -> bool:
        """Is a stage finished?"""
        return (self.folder / name).exists()

    def stage(self, name: str, fill: Callable[[Stage], None]) -> Stage:
        """The results of a stage; `fill` makes them where they are not there yet."""
        final = self.folder / name
        if not self.has(name):
            begun = self.folder / f"{name}.begun"
            shutil.rmtree(begun, ignore_errors=True)
            try:
                begun.mkdir()
                fill(Stage(begun))
                begun.rename(final)
                # Arrow keeps what it was given for a next time; other stages need it.
                pa.default_memory_pool().release_unused()
            except OSError as error:
                told = error.strerror or error
                raise UserError(f"Cannot write {self.folder}: {told}.") from None
        return Stage(final)

    def discard(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class Stage:
    """The folder of one stage's results."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def save(self, **arrays: np.ndarray) -> None:
        """Write arrays by their names."""
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)

    def load(self, name: str) -> np.ndarray:
        """Read an array."""
        return np.load(self.folder / f"{name}.npy")

    def mapped(self, name: str) -> Any:
        """An array that stays on disk."""
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def discard(self) -> None:
        """Remove the results."""
        shutil.rmtree(self.folder)
