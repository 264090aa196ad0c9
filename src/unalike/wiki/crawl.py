"""Crawl: breadth-first over a wiki, from one article to as many as are wanted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unalike.datasets.lock import alone
from unalike.errors import UserError
from unalike.progress import SILENT, Progress
from unalike.wiki.answer import normal_title
from unalike.wiki.api import Api
from unalike.wiki.collection import Collection
from unalike.wiki.crew import LOOK_UP, Crew
from unalike.wiki.database import Database, opened
from unalike.wiki.export import export
from unalike.wiki.manners import Manners
from unalike.wiki.site import Site, look_at
from unalike.wiki.state import State

POLITE = Manners()
TITLE_BYTES = 255


def ignore(_: str) -> None:
    """Hear a remark and do nothing about it."""


def crawl(
    api: str,
    start: str,
    pages: int,
    out: Path,
    *,
    manners: Manners = POLITE,
    progress: Progress = SILENT,
    tell: Callable[[str], None] = ignore,
) -> Collection:
    """Read articles from a wiki's action API into a collection, or go on with that.

    The order is that of a queue: the articles that the first one links, by title, then
    those that they link. What is read does not depend on how much goes on at once.
    """
    asked = {"wiki": api, "start": start, "pages": pages}
    _check(start, pages)
    out = out.absolute()
    folder = out.with_name(f".{out.name}.crawl")
    with alone(out):
        if out.exists():
            shutil.rmtree(folder, ignore_errors=True)
            return _finished(out, asked)
        with opened(folder / "state.db") as database, _asking(api, manners) as wiki:
            site = _begin(database, asked, wiki)
            for remark in site.remarks():
                tell(remark)
            state = State(database, pages)
            Crew(state, wiki, site.question(), progress).work()
            if state.num_pages:
                collection = export(database, out, _about(database, asked, site))
        shutil.rmtree(folder)
    if not state.num_pages:
        raise UserError(f"{api} has no article '{start}'.")
    return collection


def _check(start: str, pages: int) -> None:
    if pages < 1:
        raise UserError(f"A crawl is for 1 or more pages, not {pages}.")
    if not start.strip() or "|" in start or len(start.encode()) > TITLE_BYTES:
        raise UserError(f"'{start[:99]}' cannot be the title of an article.")


@contextmanager
def _asking(address: str, manners: Manners) -> Iterator[Api]:
    api = Api(address, manners)
    try:
        yield api
    finally:
        api.close()


def _begin(database: Database, asked: dict[str, Any], api: Api) -> Site:
    """What the wiki says of itself; a crawl that was begun must be the same one."""
    begun = database.fact("asked")
    if begun is not None:
        _compare(begun, asked, "a crawl was begun here")
        return Site(**database.fact("site"))
    site = look_at(api)
    start = api.ask({**LOOK_UP, "titles": asked["start"]}, normal_title)
    with database.together():
        database.note(asked=asked, site=asdict(site), started=_now())
        database.do(
            "INSERT INTO title (title, place) VALUES (?, 0)", start or asked["start"]
        )
    return site


def _finished(out: Path, asked: dict[str, Any]) -> Collection:
    collection = Collection.open(out)
    _compare(collection.about, asked, f"{out} is a collection")
    return collection


def _compare(begun: dict[str, Any], asked: dict[str, Any], what: str) -> None:
    for name, value in asked.items():
        if begun.get(name) != value:
            raise UserError(
                f"{what} with the {name} '{begun.get(name)}', not '{value}'; "
                "name another folder."
            )


def _about(database: Database, asked: dict[str, Any], site: Site) -> dict[str, Any]:
    return {
        **asked,
        "site": asdict(site),
        "dates": {
            "started": database.fact("started"),
            "finished": _now(),
            "views_from": database.fact("first_day"),
            "views_to": database.fact("last_day"),
        },
        "remarks": list(site.remarks()),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
