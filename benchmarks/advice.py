"""How good the first advice is: every method with its defaults, on graphs held out.

python benchmarks/advice.py                    what is missing, then the table
python benchmarks/advice.py --graphs reed98    some graphs only

`HELD_OUT` was fixed before any result was seen; the rules of `unalike advise` were
made on `OTHERS` alone. Results are kept in a file, so that a stopped run goes on.
"""

import argparse
import json
import signal
import time
from pathlib import Path

from unalike.datasets import find
from unalike.experiments.run import run
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
"""Processor seconds that a method may take on all splits of a graph."""
SMALL, MANY, FEW = 3500, 3, 2
"""Graphs of fewer nodes than the first are run on more splits."""


class TooLongError(Exception):
    """A method took longer than the limit."""


def stop(*_: object) -> None:
    """What the alarm does."""
    raise TooLongError


def solve(graph: str, method: str) -> dict:
    """A method with its defaults on the first splits of a graph."""
    dataset = find(graph)
    count = MANY if dataset.prepared().num_nodes < SMALL else FEW
    told = {"graph": graph, "method": method}
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    began = time.perf_counter()
    try:
        results = run(dataset, METHODS[method](), splits=range(count))
    except TooLongError:
        return {**told, "test": None, "why": f"over {LIMIT:.0f} s"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        **told,
        "test": [round(result.test, 3) for result in results],
        "valid": [round(result.valid, 3) for result in results],
        "seconds": round(time.perf_counter() - began, 1),
    }


def complete(graphs: list[str], file: Path) -> None:
    """Run whatever the file does not hold yet."""
    known = {(row["graph"], row["method"]) for row in rows(file)}
    for graph in graphs:
        for method in METHODS:
            if (graph, method) not in known:
                with file.open("a") as out:
                    out.write(json.dumps(solve(graph, method)) + "\n")


def rows(file: Path) -> list[dict]:
    """What was run so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="*", default=list(HELD_OUT))
    parser.add_argument("--results", type=Path, default=Path("results/advice.jsonl"))
    options = parser.parse_args()
    complete(options.graphs, options.results)


if __name__ == "__main__":
    main()
