"""Crawl a real MediaWiki on this machine: pages and requests a second.

Usage: python benchmarks/crawl.py [--pages 1000] [--links 30] [--at-once 1 2 4]

Needs PHP and Debian's mediawiki. The wiki is made in a temporary folder; the first
crawl finds its parser cache empty.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import mediawiki

from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.crawl import crawl


def main() -> None:
    """Make a wiki and print a row for each crawl of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--links", type=int, default=30)
    parser.add_argument("--at-once", type=int, nargs="+", default=[2, 1, 2, 4])
    options = parser.parse_args()
    if lack := mediawiki.lack():
        raise SystemExit(lack)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = written(options.pages, options.links)
        began = time.perf_counter()
        with mediawiki.serving(folder, texts) as address:
            print(f"a wiki of {len(texts)} pages: {time.perf_counter() - began:.0f} s")
            print(
                "at_once", "pages", "links", "seconds", "own CPU", "pages/s", sep="\t"
            )
            for place, at_once in enumerate(options.at_once):
                told = figures(address, folder / f"c{place}", options.pages, at_once)
                print(at_once, *told, sep="\t", flush=True)


def written(pages: int, links: int) -> dict[str, str]:
    """Articles of some hundred words that link others at random."""
    chance = random.Random(0)
    titles = [f"Article {number}" for number in range(pages)]
    return {
        title: f"'''{title}''' is one of many. "
        + " ".join(
            f"Some words and a [[{x}]]." for x in chance.choices(titles, k=links)
        )
        for title in titles
    }


def figures(address: str, out: Path, pages: int, at_once: int) -> tuple[object, ...]:
    """Crawl once; tells what was found and how fast."""
    began, own = time.perf_counter(), time.process_time()
    policy = CrawlPolicy(rate=0.0, concurrency=at_once)
    collection = crawl(address, "Article 0", pages, out, policy=policy)
    counts = collection.metadata["counts"]
    seconds, own = time.perf_counter() - began, time.process_time() - own
    speed = f"{counts['pages'] / seconds:.0f}"
    return counts["pages"], counts["links"], f"{seconds:.1f}", f"{own:.1f}", speed


if __name__ == "__main__":
    main()
