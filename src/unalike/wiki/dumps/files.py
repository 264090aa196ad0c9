"""DumpFiles: the files of one wiki's dump in a folder, found by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from unalike.errors import UserError
from unalike.wiki.dumps.unpacking import UNPACKERS

SUFFIXES = ("", *UNPACKERS)
NEEDED = ("page", "redirect", "pagelinks")
TABLES = (*NEEDED, "linktarget")
_VIEWS = re.compile(r"pageviews-(\d{6}|\d{8})-(user|\d{6})(\.gz|\.bz2)?")
"""Views of a month or a day by people, or of an hour by everybody."""


@dataclass(frozen=True)
class DumpFiles:
    """The tables by their names, and the files of views."""

    wiki: str
    date: str
    tables: dict[str, Path]
    views: list[Path]

    @classmethod
    def find(cls, folder: Path) -> DumpFiles:
        """Look through a folder; complain of what is missing or does not match."""
        if not folder.is_dir():
            raise UserError(f"There is no folder {folder}.")
        found = {name: _tables(folder, name) for name in TABLES}
        for name in NEEDED:
            if not found[name]:
                raise UserError(f"{folder} has no table {name} (*-{name}.sql.gz).")
        tables = {name: paths[0] for name, paths in found.items() if paths}
        wiki, _, date = _prefix(tables["page"]).rpartition("-")
        views = [path for path in folder.iterdir() if _VIEWS.fullmatch(path.name)]
        files = cls(wiki, date, tables, sorted(views))
        files._check(found)
        return files

    def dates(self) -> dict[str, str | None]:
        """The date of the dump, and the first and last month, day or hour of views."""
        told = [path.name.split(".")[0].split("-", 1)[1] for path in self.views]
        days = [one.removesuffix("-user") for one in told]
        first, last = (days[0], days[-1]) if days else (None, None)
        return {"dump": self.date, "views_from": first, "views_to": last}

    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes."""
        paths = [*self.tables.values(), *self.views]
        return {path.name: path.stat().st_size for path in paths}

    def _check(self, found: dict[str, list[Path]]) -> None:
        for name, paths in found.items():
            if len(paths) > 1:
                both = " and ".join(path.name for path in paths[:2])
                raise UserError(f"There are two tables {name}: {both}; leave one.")
        page = self.tables["page"]
        for path in self.tables.values():
            if _prefix(path) != _prefix(page):
                raise UserError(
                    f"{path.name} and {page.name} are not of the same wiki and date."
                )


def _tables(folder: Path, name: str) -> list[Path]:
    found = (folder.glob(f"*-{name}.sql{suffix}") for suffix in SUFFIXES)
    return sorted(path for paths in found for path in paths)


def _prefix(path: Path) -> str:
    """The wiki and the date: `enwiki-20240101`."""
    return path.name.rpartition(".sql")[0].rpartition("-")[0]
