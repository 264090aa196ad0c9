"""Tables: what was found in dumps, written as the tables of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.errors import UserError
from unalike.importing.threads import ahead
from unalike.kernels.compiled import compiled
from unalike.kernels.sorting import sort_run
from unalike.progress import Progress
from unalike.wiki.collection import TABLES, Writer
from unalike.wiki.dumps.ball import ball, number_of
from unalike.wiki.dumps.pages import Pages
from unalike.wiki.dumps.titles import readable
from unalike.wiki.dumps.views import NONE

ROWS = 1 << 20
LINKS = 1 << 22
"""Links that are resolved at once."""


@dataclass(eq=False)
class Found:
    """A wiki: titles by number, first articles, then redirects, then missing ones."""

    pages: Pages
    names: pa.Array
    leads: np.ndarray
    """The article that each page leads to."""
    starts: np.ndarray
    columns: np.ndarray
    """The titles that each article links."""
    views: np.ndarray | None
    remarks: list[str]
    """What their owner should know."""
    kept: np.ndarray = field(init=False)
    """Is the article part of the collection?"""
    linked: np.ndarray = field(init=False)
    """Do kept articles link the title? Filled while links are written."""

    def __post_init__(self) -> None:
        self.kept = np.ones(self.pages.num_articles, np.bool_)
        self.linked = np.zeros(len(self.names), np.bool_)

    def keep(self, start: str, most: int | None) -> None:
        """Keep only articles that links lead to from a title, the first of them."""
        first = number_of(start, self.names[: len(self.pages)])
        count = self.pages.num_articles
        self.kept = ball(
            first,
            count if most is None else most,
            (self.starts[: count + 1], self.columns),
            self.leads,
            self.names,
        )
        if not self.kept.any():
            raise UserError(f"'{start}' is a redirect that leads to no article.")
        self.linked[first] = True

    def write(self, writer: Writer, progress: Progress) -> None:
        """Write all tables."""
        self._write_pages(writer)
        self._write_links(writer, progress)
        (linked,) = self.linked.nonzero()
        self._write_aliases(writer, linked[linked < len(self.pages)])
        missing = readable(self.names.take(linked[linked >= len(self.pages)])).sort()
        # What is no text was replaced, so that two titles may have become the same.
        repeated = pc.equal(missing[1:], missing[:-1])
        new = pa.concat_arrays([pa.repeat(True, 1), pc.invert(repeated)])
        write_rows(writer, "missing", [missing.filter(new[: len(missing)])])

    def _write_pages(self, writer: Writer) -> None:
        (kept,) = self.kept.nonzero()
        with writer.table("pages") as table:
            for first in range(0, len(kept), ROWS):
                own = kept[first : first + ROWS]
                columns = [
                    self.pages.ids[own],
                    readable(self.names.take(own)),
                    pa.repeat("", len(own)),
                    self._views(own),
                ]
                table.write_table(rows("pages", columns))

    def _views(self, articles: np.ndarray) -> pa.Array:
        if self.views is None:
            return pa.nulls(len(articles))
        views = self.views[articles]
        return pa.array(views, mask=views == NONE)

    def _write_aliases(self, writer: Writer, linked: np.ndarray) -> None:
        leads = self.leads[linked]
        lead_in = (linked >= self.pages.num_articles) & (leads >= 0)
        lead_in &= self.kept[np.maximum(leads, 0)]
        names = readable(self.names.take(linked[lead_in]))
        order = pc.array_sort_indices(names)
        ids = self.pages.ids[leads[lead_in]]
        write_rows(writer, "aliases", [names.take(order), ids[order.to_numpy()]])

    def _write_links(self, writer: Writer, progress: Progress) -> None:
        progress.stage("Writing links", len(self.columns), "links")
        with writer.table("links") as table:
            for pairs, done in ahead(self._resolved()):
                ends = [self.pages.ids[pairs[:, end]] for end in range(2)]
                table.write_table(rows("links", ends))
                progress.advance(done)

    def _resolved(self) -> Iterator[tuple[np.ndarray, int]]:
        """Pairs of articles, in order, and how many links were looked at for them."""
        first, num_rows = 0, self.pages.num_articles
        while first < num_rows:
            fits = np.searchsorted(self.starts, self.starts[first] + LINKS, "right") - 1
            end = min(num_rows, max(first + 1, int(fits)))
            begin, close = self.starts[first], self.starts[end]
            own = np.array(self.columns[begin:close])
            starts = self.starts[first : end + 1] - begin
            yield (
                resolve(own, starts, first, self.leads, self.kept, self.linked),
                int(close - begin),
            )
            first = end


def rows(name: str, columns: list[pa.Array | np.ndarray]) -> pa.Table:
    """Some rows of a table, in the types that it has."""
    schema = TABLES[name]
    typed = [
        pa.array(column).cast(entry.type)
        for column, entry in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(typed, schema=schema)


def write_rows(writer: Writer, name: str, columns: list[pa.Array | np.ndarray]) -> None:
    """Write a whole table."""
    with writer.table(name) as table:
        for first in range(0, len(columns[0]), ROWS):
            table.write_table(rows(name, [c[first : first + ROWS] for c in columns]))


@compiled()
def resolve(
    columns: np.ndarray,
    starts: np.ndarray,
    first: int,
    leads: np.ndarray,
    kept: np.ndarray,
    linked: np.ndarray,
) -> np.ndarray:
    """Turn links to titles into links to articles: distinct, ascending, no loops.

    Marks the titles that kept articles link.
    """
    pairs = np.empty((len(columns), 2), np.int32)
    count = 0
    for row in range(len(starts) - 1):
        if not kept[first + row]:
            continue
        own = columns[starts[row] : starts[row + 1]]
        length = 0
        for title in own:
            linked[title] = True
            article = leads[title] if title < len(leads) else -1
            if article >= 0 and article != first + row and kept[article]:
                own[length] = article
                length += 1
        sort_run(own, own[:0], 0, length)
        for i in range(length):
            if i == 0 or own[i] != own[i - 1]:
                pairs[count, 0] = first + row
                pairs[count, 1] = own[i]
                count += 1
    return pairs[:count]
