"""How fast are dumps of a wiki read, and in how much memory? Prints a table."""

import resource
import sys
import tempfile
import time
import zlib
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import dump_files

from unalike.wiki.dumps import collect
from unalike.wiki.dumps.sql import SqlTable
from unalike.wiki.dumps.unpacking import unpacked

PREFIX = "benchwiki-20240101"
PIECE = 1 << 20
REDIRECTS, MISSING, OTHERS = 1.5, 2.0, 4.0
"""Redirects, missing titles and targets in other namespaces for each article."""
REST = ",0,0.123456789012,'20240101000000',NULL,123456789,4321,'wikitext',NULL)"
"""What the rows of the table `page` end in."""


class Clock:
    """A listener that notes how long each stage takes."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, float]] = []

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.marks.append((what, time.perf_counter()))

    def advance(self, amount: int | float, note: str = "") -> None:
        pass

    def told(self) -> Iterator[tuple[str, float]]:
        """Each stage with the seconds until the next."""
        ends = [mark for _, mark in self.marks[1:]] + [time.perf_counter()]
        for (what, began), end in zip(self.marks, ends, strict=True):
            yield what, end - began


def joined(*parts: str | pa.Array) -> bytes:
    """Rows made of columns and what stands between them."""
    texts = [
        part if isinstance(part, str) else pc.cast(part, pa.string()) for part in parts
    ]
    return ",".join(pc.binary_join_element_wise(*texts, "").to_pylist()).encode()


def titles(numbers: pa.Array) -> pa.Array:
    """Names about as long as those of Wikipedia."""
    texts = pc.cast(numbers, pa.string())
    return pc.binary_join_element_wise("Title_number_", texts, "")


def stretches(count: int) -> Iterator[pa.Array]:
    """The numbers from 0 to `count`, some at a time."""
    for first in range(0, count, PIECE):
        yield pa.array(np.arange(first, min(first + PIECE, count)))


def pages(articles: int, known: int) -> Iterator[bytes]:
    """Rows of articles and redirects."""
    for ids in stretches(known):
        leads = pc.cast(pc.greater_equal(ids, articles), pa.int8())
        yield joined("(", ids, ",0,'", titles(ids), "',", leads, REST)


def redirects(articles: int, known: int) -> Iterator[bytes]:
    """Rows that lead each redirect to an article."""
    draw = np.random.default_rng(1)
    for ids in stretches(known - articles):
        aims = titles(pa.array(draw.integers(0, articles, len(ids))))
        yield joined("(", pc.add(ids, articles), ",0,'", aims, "','','')")


def targets(titled: int, every: int) -> Iterator[bytes]:
    """Rows of what is linked, of which the last are in another namespace."""
    for ids in stretches(every):
        space = pc.cast(pc.greater_equal(ids, titled), pa.int8())
        yield joined("(", ids, ",", space, ",'", titles(ids), "')")


def links(articles: int, every: int, count: int) -> Iterator[bytes]:
    """Rows of links; few targets have most of them."""
    draw = np.random.default_rng(2)
    for some in stretches(count):
        sources = pa.array(some.to_numpy() * articles // count)
        aims = pa.array((draw.random(len(some)) ** 3 * every).astype(np.int64))
        yield joined("(", sources, ",0,", aims, ")")


def write(
    folder: Path, name: str, columns: dict[str, str], pieces: Iterable[bytes]
) -> None:
    """Write a table, one statement for each piece of rows."""
    head, tail = dump_files.table(name, columns, [(0,)]).split(b"(0);\n")
    head, insert = head.rsplit(b"\n", 1)
    packer = zlib.compressobj(wbits=31)
    with (folder / f"{PREFIX}-{name}.sql.gz").open("wb") as file:
        file.write(packer.compress(head + b"\n"))
        for piece in pieces:
            file.write(packer.compress(insert + piece + b";\n"))
        file.write(packer.compress(tail) + packer.flush())


def generate(folder: Path, articles: int, num_links: int) -> None:
    """The four tables of a wiki."""
    known = int(articles * (1 + REDIRECTS))
    titled = int(known + articles * MISSING)
    every = int(titled + articles * OTHERS)
    write(folder, "page", dump_files.PAGE, pages(articles, known))
    write(folder, "redirect", dump_files.REDIRECT, redirects(articles, known))
    write(folder, "linktarget", dump_files.LINKTARGET, targets(titled, every))
    rows = links(articles, every, num_links)
    write(folder, "pagelinks", dump_files.PAGELINKS, rows)


def seconds(work: Iterable[object]) -> float:
    """How long it takes to go through some work."""
    began = time.perf_counter()
    for _ in work:
        pass
    return time.perf_counter() - began


def report(folder: Path, num_links: int) -> None:
    """Read the tables, and print what it cost."""
    path = folder / f"{PREFIX}-pagelinks.sql.gz"
    rows = SqlTable.open(path, "pagelinks").rows(["pl_from", "pl_target_id"])
    next(rows)
    print(f"pagelinks, packed       {path.stat().st_size / 1e6:8.1f} MB")
    print(f"  unpacked              {seconds(unpacked(path)):8.1f} s")
    print(f"  unpacked and scanned  {seconds(rows):8.1f} s")
    clock = Clock()
    began = time.perf_counter()
    collection = collect(folder, folder / "collection", progress=clock)
    took = time.perf_counter() - began
    for what, own in clock.told():
        print(f"{what:<23} {own:8.1f} s")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(f"all                     {took:8.1f} s")
    print(f"M links a second        {num_links / took / 1e6:8.2f}")
    print(f"links that were kept    {collection.rows('links'):,}")
    print(f"peak of memory          {usage.ru_maxrss * 1024 / 1e9:8.2f} GB")


def main() -> None:
    """Generate dumps, read them, and tell the cost."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=30_000_000)
    parser.add_argument("--articles", type=int, default=300_000)
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        generate(Path(folder), options.articles, options.links)
        report(Path(folder), options.links)


if __name__ == "__main__":
    main()
