"""How fast are dumps of a wiki read, and in how much memory? Prints a table."""

import json
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

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import dump_files

from unalike.wiki.dumps import collect
from unalike.wiki.dumps.files import decompressed_blocks
from unalike.wiki.dumps.sql import SqlTable

PREFIX = "benchwiki-20240101"
HEADER = f"{'stage':<24}  seconds    CPU s  peak GB"
PIECE = 1 << 20
REDIRECTS, MISSING, OTHERS = 1.5, 2.0, 4.0
"""Redirects, missing titles and targets in other namespaces for each article."""
REST = ",0,0.123456789012,'20240101000000',NULL,123456789,4321,'wikitext',NULL)"
"""What the rows of the table `page` end in."""


def peak() -> float:
    """The most memory that was used since it was last asked, in GB (Linux)."""
    status = Path("/proc/self/status").read_text("utf-8")
    used = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5", "utf-8")
    return int(used.split()[1]) * 1024 / 1e9


class Clock:
    """A listener that measures each stage, and prints it unless it is silent."""

    def __init__(self, *, quiet: bool) -> None:
        self.now = ""
        self.began = (0.0, 0.0)
        self.quiet = quiet
        self.stages: list[dict[str, str | float]] = []

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.stop()
        peak()
        self.now, self.began = what, (time.perf_counter(), time.process_time())

    def advance(self, amount: int | float, note: str = "") -> None:
        pass

    def stop(self) -> None:
        """Note what the stage that ends took."""
        if not self.now:
            return
        took = time.perf_counter() - self.began[0]
        cpu = time.process_time() - self.began[1]
        row = {"stage": self.now, "seconds": took, "cpu": cpu, "peak_gb": peak()}
        self.stages.append(row)
        if not self.quiet:
            print(f"{self.now:<24} {took:8.1f} {cpu:8.1f} {row['peak_gb']:8.2f}")


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


def time_links(path: Path, clock: Clock) -> None:
    """Measure what the largest table costs alone: to unpack, then to scan as well."""
    table = SqlTable.open(path, "pagelinks")
    for what, work in {
        "Unpacking pagelinks": decompressed_blocks(path),
        "and scanning it": table.rows(["pl_from", "pl_target_id"]),
    }.items():
        clock.stage(what, None, "")
        for _ in work:
            pass
    clock.stop()
    clock.now = ""


def report(folder: Path, num_links: int, *, quiet: bool) -> dict[str, object]:
    """Read the tables, and tell what it cost."""
    peak()  # forgets the peak of what generated the tables
    idle, clock = peak(), Clock(quiet=quiet)
    time_links(folder / f"{PREFIX}-pagelinks.sql.gz", clock)
    began, before = time.perf_counter(), time.process_time()
    collection = collect(folder, folder / "collection", progress=clock)
    clock.stop()
    return {
        "links": num_links,
        "kept": collection.num_rows("links"),
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - before,
        "idle_gb": idle,
        "stages": clock.stages,
    }


def main() -> None:
    """Generate dumps, read them, and tell the cost."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=30_000_000)
    parser.add_argument("--articles", type=int, default=300_000)
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        generate(Path(folder), options.articles, options.links)
        if not options.json:
            print(HEADER)
        found = report(Path(folder), options.links, quiet=options.json)
    if options.json:
        print(json.dumps({"articles": options.articles, **found}))
        return
    print(f"{'all':<24} {found['seconds']:8.1f} {found['cpu']:8.1f}")
    print(f"{found['links']:,} links, {found['kept']:,} kept")
    print(f"{found['links'] / found['seconds'] / 1e6:.2f} M links a second")


if __name__ == "__main__":
    main()
