"""Dump files as mysqldump and Wikimedia write them, from a description of a wiki."""

from __future__ import annotations

import bz2
import gzip
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

ESCAPES = {
    0: rb"\0",
    8: rb"\b",
    9: rb"\t",
    10: rb"\n",
    13: rb"\r",
    26: rb"\Z",
    34: rb"\"",
    39: rb"\'",
    92: rb"\\",
}
PAGE = {
    "page_id": "int(8) unsigned NOT NULL AUTO_INCREMENT",
    "page_namespace": "int(11) NOT NULL DEFAULT 0",
    "page_title": "varbinary(255) NOT NULL DEFAULT ''",
    "page_is_redirect": "tinyint(1) unsigned NOT NULL DEFAULT 0",
    "page_is_new": "tinyint(1) unsigned NOT NULL DEFAULT 0",
    "page_random": "double unsigned NOT NULL DEFAULT 0",
    "page_touched": "binary(14) NOT NULL",
    "page_links_updated": "varbinary(14) DEFAULT NULL",
    "page_latest": "int(8) unsigned NOT NULL DEFAULT 0",
    "page_len": "int(8) unsigned NOT NULL DEFAULT 0",
    "page_content_model": "varbinary(32) DEFAULT NULL",
    "page_lang": "varbinary(35) DEFAULT NULL",
}
REDIRECT = {
    "rd_from": "int(8) unsigned NOT NULL DEFAULT 0",
    "rd_namespace": "int(11) NOT NULL DEFAULT 0",
    "rd_title": "varbinary(255) NOT NULL DEFAULT ''",
    "rd_interwiki": "varbinary(32) DEFAULT NULL",
    "rd_fragment": "varbinary(255) DEFAULT NULL",
}
LINKTARGET = {
    "lt_id": "bigint(20) unsigned NOT NULL AUTO_INCREMENT",
    "lt_namespace": "int(11) NOT NULL",
    "lt_title": "varbinary(255) NOT NULL",
}
PAGELINKS = {
    "pl_from": "int(8) unsigned NOT NULL DEFAULT 0",
    "pl_from_namespace": "int(11) NOT NULL DEFAULT 0",
    "pl_target_id": "bigint(20) unsigned NOT NULL",
}
OLD_PAGELINKS = {
    "pl_from": "int(8) unsigned NOT NULL DEFAULT 0",
    "pl_namespace": "int(11) NOT NULL DEFAULT 0",
    "pl_title": "varbinary(255) NOT NULL DEFAULT ''",
    "pl_from_namespace": "int(11) NOT NULL DEFAULT 0",
}
NAMESPACES = {"Talk": 1, "User": 2, "File": 6, "Template": 10, "Category": 14}
INTERWIKI = {"de", "fr", "wikt"}
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, "": bytes}

Value = None | int | float | str | bytes


def quoted(value: Value) -> bytes:
    """One value as mysqldump writes it."""
    if value is None:
        return b"NULL"
    if isinstance(value, int | float):
        return repr(value).encode()
    text = value.encode() if isinstance(value, str) else value
    return b"'" + b"".join(ESCAPES.get(byte, bytes([byte])) for byte in text) + b"'"


def statements(name: str, rows: Iterable[Sequence[Value]], at_once: int) -> bytes:
    """The rows of a table as statements of at most so many."""
    written = [b"(" + b",".join(map(quoted, row)) + b")" for row in rows]
    return b"".join(
        f"INSERT INTO `{name}` VALUES ".encode()
        + b",".join(written[first : first + at_once])
        + b";\n"
        for first in range(0, len(written), at_once)
    )


def table(
    name: str,
    columns: Mapping[str, str],
    rows: Iterable[Sequence[Value]],
    *,
    at_once: int = 3,
) -> bytes:
    """The dump of one table."""
    schema = ",\n".join(f"  `{column}` {kind}" for column, kind in columns.items())
    head = (
        "-- MariaDB dump 10.19  Distrib 10.5.23-MariaDB\n--\n"
        "-- Host: db1    Database: testwiki\n\n"
        "/*!40101 SET NAMES utf8mb4 */;\n"
        f"DROP TABLE IF EXISTS `{name}`;\n"
        f"CREATE TABLE `{name}` (\n{schema},\n  PRIMARY KEY (`{next(iter(columns))}`)\n"
        ") ENGINE=InnoDB DEFAULT CHARSET=binary;\n\n"
        f"/*!40000 ALTER TABLE `{name}` DISABLE KEYS */;\n"
    )
    tail = f"/*!40000 ALTER TABLE `{name}` ENABLE KEYS */;\n-- Dump completed\n"
    return head.encode() + statements(name, rows, at_once) + tail.encode()


def pack(path: Path, content: bytes) -> Path:
    """Write a file, compressed as its suffix says."""
    path.write_bytes(PACKERS[path.suffix if path.suffix != ".sql" else ""](content))
    return path


def namespace_and_title(title: str) -> tuple[int, str]:
    """The number of a title's namespace, and the title as the tables write it."""
    space, colon, rest = title.partition(":")
    if colon and space in NAMESPACES:
        return NAMESPACES[space], rest.replace(" ", "_")
    return 0, title.replace(" ", "_")


def numbered(wiki: Mapping[str, str | Sequence[str]]) -> dict[str, int]:
    """The page id of each title: ids have gaps, and do not follow the alphabet."""
    return {title: 7 * number + 3 for number, title in enumerate(wiki)}


def write(
    wiki: Mapping[str, str | Sequence[str]],
    folder: Path,
    *,
    ids: Mapping[str, int] | None = None,
    prefix: str = "testwiki-20240101",
    suffix: str = ".gz",
    old: bool = False,
) -> Path:
    """Write the tables of a wiki: a title has a list of links, or leads to another.

    A redirect leads to a title, also in another namespace ("Talk:…") or on another wiki
    ("de:…"). `old` writes pagelinks as it was before linktarget.
    """
    ids = ids or numbered(wiki)
    targets = {
        title: 11 * number + 5
        for number, title in enumerate(
            dict.fromkeys(one for own in wiki.values() for one in _linked(own))
        )
    }
    tables = {
        "page": (PAGE, _pages(wiki, ids)),
        "redirect": (REDIRECT, _redirects(wiki, ids)),
        "linktarget": (
            LINKTARGET,
            [(n, *namespace_and_title(one)) for one, n in targets.items()],
        ),
        "pagelinks": (PAGELINKS, _links(wiki, ids, targets)),
    }
    if old:
        del tables["linktarget"]
        tables["pagelinks"] = (OLD_PAGELINKS, _old_links(wiki, ids))
    folder.mkdir(parents=True, exist_ok=True)
    for name, (columns, rows) in tables.items():
        pack(folder / f"{prefix}-{name}.sql{suffix}", table(name, columns, rows))
    return folder


def write_views(
    views: Mapping[str, int], path: Path, *, codes: Sequence[str], hourly: bool = False
) -> Path:
    """Write views by title, dealt over the codes of a wiki's devices."""
    lines = ["aa.wikipedia Main_Page 1 desktop 99 A99", "aa Main_Page 99 0"]
    for title, count in views.items():
        name = title.replace(" ", "_")
        for number, code in enumerate(codes):
            share = count // len(codes) + (number < count % len(codes))
            rest = f"{share} 0" if hourly else f"null mobile-web {share} A{share}"
            lines.append(f"{code} {name} {rest}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return pack(path, "".join(f"{line}\n" for line in sorted(lines)).encode())


def _linked(own: str | Sequence[str]) -> Sequence[str]:
    """A redirect has a link as well: to where it leads."""
    if not isinstance(own, str):
        return own
    return [] if own.partition(":")[0] in INTERWIKI else [own]


def _pages(wiki, ids):
    for title, own in wiki.items():
        space, name = namespace_and_title(title)
        redirect = int(isinstance(own, str))
        rest = (0.731240562, "20240101000000", None, 5, 120, "wikitext", None)
        yield (ids[title], space, name, redirect, 1 - redirect, *rest)


def _redirects(wiki, ids):
    for title, own in wiki.items():
        if isinstance(own, str):
            wiki_code, _, rest = own.partition(":")
            if wiki_code in INTERWIKI:
                yield (ids[title], 0, rest.replace(" ", "_"), wiki_code, "")
            else:
                yield (ids[title], *namespace_and_title(own), "", "A_part")


def _links(wiki, ids, targets):
    for title, own in wiki.items():
        for one in sorted(set(_linked(own)), key=targets.get):
            yield (ids[title], namespace_and_title(title)[0], targets[one])


def _old_links(wiki, ids):
    for title, own in wiki.items():
        for one in sorted(set(_linked(own))):
            yield (ids[title], *namespace_and_title(one), namespace_and_title(title)[0])


def write_database(path: Path, folder: Path, *, old: bool) -> Path:
    """Write the tables of a MediaWiki's own SQLite database.

    Its pagelinks are of the old form; the new one is made of them unless `old`.
    """
    with closing(sqlite3.connect(path)) as base:
        tables = {name: _stored(base, name) for name in ("page", "redirect")}
        columns, rows = _stored(base, "pagelinks")
        tables["pagelinks"] = columns, rows
    if not old:
        links = [dict(zip(columns, row, strict=True)) for row in rows]
        aims = dict.fromkeys((one["pl_namespace"], one["pl_title"]) for one in links)
        ids = {aim: 3 * number + 2 for number, aim in enumerate(aims)}
        tables["linktarget"] = LINKTARGET, [(ids[aim], *aim) for aim in ids]
        tables["pagelinks"] = (
            PAGELINKS,
            [
                (
                    one["pl_from"],
                    one["pl_from_namespace"],
                    ids[one["pl_namespace"], one["pl_title"]],
                )
                for one in links
            ],
        )
    folder.mkdir(parents=True)
    for name, (columns, rows) in tables.items():
        content = table(name, columns, rows, at_once=100)
        pack(folder / f"testwiki-20240101-{name}.sql.gz", content)
    return folder


def _stored(base: sqlite3.Connection, name: str) -> tuple[dict[str, str], list[tuple]]:
    schema = base.execute(f"PRAGMA table_info({name})").fetchall()
    columns = {column: kind for _, column, kind, *_ in schema}
    return columns, base.execute(f"SELECT * FROM {name}").fetchall()
