"""Tables: the files a user names, by path, folder or pattern, opened in order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unalike.errors import UserError
from unalike.importing.batch import Header, Table
from unalike.importing.parquet import open_parquet
from unalike.importing.text import open_text

FORMATS: dict[str, Callable[[Path, Header], Table]] = {
    ".csv": open_text,
    ".csv.gz": open_text,
    ".tsv": open_text,
    ".tsv.gz": open_text,
    ".txt": open_text,
    ".txt.gz": open_text,
    ".parquet": open_parquet,
    ".pq": open_parquet,
}


@dataclass(frozen=True)
class Tables:
    """The opened files of edges and of nodes."""

    edges: list[Table]
    nodes: list[Table]

    @classmethod
    def open(
        cls,
        edges: Iterable[str | Path],
        nodes: Iterable[str | Path],
        header: Header = "guess",
    ) -> Tables:
        return cls(open_tables(edges, header), open_tables(nodes, header))

    @property
    def notes(self) -> list[str]:
        """What was guessed about the files."""
        return [table.note for table in (*self.edges, *self.nodes) if table.note]

    def about(self, edge_rows: list[int], node_rows: list[int]) -> dict[str, Any]:
        """The files with their sizes, for the record."""
        return {
            "edges": _files(self.edges, edge_rows),
            "nodes": _files(self.nodes, node_rows),
        }


def megabytes(tables: Iterable[Table]) -> float:
    """The size of files, the measure of progress through them."""
    return sum(table.path.stat().st_size for table in tables) / 1e6


def open_tables(given: Iterable[str | Path], header: Header = "guess") -> list[Table]:
    """Every file that is meant, opened; a folder stands for the tables in it."""
    return [_open(path, header) for name in given for path in find_files(str(name))]


def find_files(name: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, sorted."""
    path = Path(name)
    if path.is_dir():
        found = [file for file in path.iterdir() if _is_table(file)]
        if not found:
            raise UserError(f"{path} holds no table; known are {', '.join(FORMATS)}.")
        return sorted(found)
    if path.exists() or not set(name) & set("*?["):
        return [path]
    found = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not found:
        raise UserError(f"No file matches '{name}'.")
    return found


def _files(tables: list[Table], rows: list[int]) -> list[dict[str, Any]]:
    return [
        {"file": str(table.path), "bytes": table.path.stat().st_size, "rows": count}
        for table, count in zip(tables, rows, strict=True)
    ]


def _open(path: Path, header: Header) -> Table:
    if not path.exists():
        raise UserError(f"There is no file {path}.")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path} may not be read: permission denied.")
    kind = _kind(path)
    if kind is None:
        raise UserError(
            f"{path} has no ending that tells its format; known are "
            f"{', '.join(FORMATS)}."
        )
    table = FORMATS[kind](path, header)
    for column, count in Counter(table.columns).items():
        if count > 1:
            raise UserError(f"{path} has {count} columns called '{column}'.")
    return table


def _kind(path: Path) -> str | None:
    return next((end for end in FORMATS if path.name.lower().endswith(end)), None)


def _is_table(path: Path) -> bool:
    return path.is_file() and path.name[0] not in "._" and _kind(path) is not None
