"""How good the first advice is: every method with its defaults, on graphs held out.

python benchmarks/advice.py                    what is missing, then the table
python benchmarks/advice.py --graphs reed98    some graphs only
python benchmarks/advice.py --limit 900        more time for what took too long
python benchmarks/advice.py --device cuda      all splits of a graph, on a card
python benchmarks/advice.py --only table       no runs

`HELD_OUT` was fixed before any result was seen; the rules of `unalike advise` were
made on `OTHERS` alone. Results are kept in a file, so that a stopped run goes on.
"""

import argparse
import json
import signal
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from unalike.advice import advise
from unalike.datasets import find
from unalike.experiments.run import RunOptions, run
from unalike.methods import METHODS

HELD_OUT = (
    "caltech36",
    "reed98",
    "simmons81",
    "amherst41",
    "citeseer",
    "chameleon",
    "actor",
    "twitch-de",
    "johns-hopkins55",
    "mit8",
    "squirrel",
    "tolokers",
)
OTHERS = (
    "texas",
    "wisconsin",
    "cornell",
    "chameleon-filtered",
    "cora",
    "squirrel-filtered",
    "twitch-engb",
    "rice31",
    "minesweeper",
)
LIMIT = 120.0
"""Processor seconds that a method may take on all splits of a graph, unless told."""
ADVICE_SECONDS = 60.0
"""Time that the advice may take, unless told."""
GOOD = 1.0
"""Points below the best that the first advice may stay."""
SPLITS = {"cpu": 3, "cuda": 10}
"""Splits that every method is run on, where a graph has so many."""


class TooLongError(Exception):
    """A method took longer than the limit."""


def stop(*_: object) -> None:
    """What the alarm does."""
    raise TooLongError


def solve(graph: str, method: str, limit: float, device: str) -> dict:
    """A method with its defaults on the first splits of a graph."""
    dataset = find(graph)
    splits = range(min(SPLITS[device], len(dataset.splits())))
    told = {"graph": graph, "method": method}
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    began = time.perf_counter()
    try:
        results = run(
            dataset, METHODS[method](), splits=splits, options=RunOptions(device=device)
        )
    except TooLongError:
        return {**told, "test": None, "limit": limit}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        **told,
        "test": [round(result.test, 3) for result in results],
        "valid": [round(result.valid, 3) for result in results],
        "seconds": round(time.perf_counter() - began, 1),
    }


def advised(graph: str, seconds: float, device: str) -> dict:
    """What is advised for a graph, by train and valid labels of its first split."""
    began = time.perf_counter()
    advice = advise(find(graph), seconds=seconds, device=device)
    return {
        "graph": graph,
        "advice": {each.words: each.trial.mean_score for each in advice.ranking},
        "seconds": round(time.perf_counter() - began, 1),
        "no time for": advice.left_out,
        "verdicts": advice.verdicts,
    }


def complete(graphs: list[str], file: Path, limit: float, device: str) -> None:
    """Run whatever the file does not hold yet; what took too long, with more time."""
    for graph in graphs:
        known = methods_of(graph, rows(file))
        for method in METHODS:
            row = known.get(method, {"test": None, "limit": 0.0})
            if row["test"] is None and row["limit"] < limit:
                keep(file, solve(graph, method, limit, device))


def keep(file: Path, row: dict) -> None:
    """Add a row to the file."""
    with file.open("a") as out:
        out.write(json.dumps(row) + "\n")


def methods_of(graph: str, known: list[dict]) -> dict[str, dict]:
    """The rows of a graph by method; a later one replaces an earlier one."""
    return {r["method"]: r for r in known if r["graph"] == graph and "method" in r}


class Outcome(NamedTuple):
    """Test scores of a graph by method, and the first recommendation for it."""

    graph: str
    first: str
    tests: dict[str, float]
    too_long: list[str]

    @property
    def best(self) -> str:
        """The method with the highest test score."""
        return max(self.tests, key=self.tests.__getitem__)

    def points_below(self, method: str) -> float:
        """Points between the best method and another one, or the `first` advice."""
        name = self.first.split()[0] if method == "first" else method
        return self.tests[self.best] - self.tests.get(name, -inf)


def outcomes(graphs: Sequence[str], known: list[dict]) -> list[Outcome]:
    """The outcomes of all graphs that have methods and a recommendation."""
    found = []
    for graph in graphs:
        methods = methods_of(graph, known)
        advices = [row for row in known if row["graph"] == graph and "advice" in row]
        tests = {
            name: mean(row["test"]) for name, row in methods.items() if row["test"]
        }
        too_long = [name for name in methods if name not in tests]
        if advices and tests:
            first = next(iter(advices[-1]["advice"]))
            found.append(Outcome(graph, first, tests, too_long))
    return found


def rows(file: Path) -> list[dict]:
    """What was run so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def table(graphs: list[str], file: Path) -> None:
    """Print the outcomes, and in how many cases the advice is good enough."""
    found = outcomes(graphs, rows(file))
    print("| graph | first advice | best of all | points short | took too long |")
    print("| :-- | :-- | :-- | --: | :-- |")
    for one in found:
        reached = one.tests[one.best] - one.points_below("first")
        cells = (
            one.graph,
            f"{one.first} {reached:.1f}",
            f"{one.best} {one.tests[one.best]:.1f}",
            f"{one.points_below('first'):.1f}",
            ", ".join(one.too_long) or "none",
        )
        print(f"| {' | '.join(cells)} |")
    good = sum(one.points_below("first") <= GOOD for one in found)
    missing = sorted({*graphs} - {one.graph for one in found})
    print(f"\n{good} of {len(found)} within {GOOD} of the best; not run: {missing}")


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="*", default=list(HELD_OUT))
    parser.add_argument("--results", type=Path, default=Path("results/advice.jsonl"))
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--seconds", type=float, default=ADVICE_SECONDS)
    parser.add_argument("--device", choices=list(SPLITS), default="cpu")
    parser.add_argument("--only", choices=["methods", "advice", "table"])
    options = parser.parse_args()
    graphs, file = options.graphs, options.results
    if options.only in (None, "methods"):
        complete(graphs, file, options.limit, options.device)
    if options.only in (None, "advice"):
        for graph in graphs:
            if not any(r["graph"] == graph and "advice" in r for r in rows(file)):
                keep(file, advised(graph, options.seconds, options.device))
    table(graphs, file)


if __name__ == "__main__":
    main()
