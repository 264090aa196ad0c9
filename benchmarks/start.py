"""Time of a command from its start to its end: the first time, and again.

python benchmarks/start.py          a table
python benchmarks/start.py --json   one JSON document
python benchmarks/start.py --only help --repeats 1

The first time all caches are empty: Python compiles modules, numba compiles loops, and
the graph is generated. CPU seconds depend less than seconds on what else runs.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 5
HEADS = ["command", "first, s", "first, CPU s", "again, s", "again, CPU s"]
COMMANDS = {
    "python -c 'import unalike'": ["-c", "import unalike"],
    "python -c 'import torch'": ["-c", "import torch"],
    "unalike --help": ["-m", "unalike", "--help"],
    "unalike train chameleon-twin linkx --splits 0 --epochs 1": [
        *("-m", "unalike", "train", "chameleon-twin", "linkx"),
        *("--splits", "0", "--epochs", "1"),
    ],
}


def with_caches(folder: Path) -> dict[str, str]:
    """An environment whose caches are in a folder."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    return {
        **inherited,
        "XDG_CACHE_HOME": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }


def timed(words: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Seconds and CPU seconds of a Python command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], env=env, check=True, stdout=subprocess.DEVNULL
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, spent


def row(name: str, words: list[str], repeats: int) -> list[object]:
    """The first call with empty caches, and the fastest of some more."""
    with tempfile.TemporaryDirectory() as folder:
        env = with_caches(Path(folder))
        first = timed(words, env)
        again = [timed(words, env) for _ in range(repeats)]
    least = [min(values) for values in zip(*again, strict=True)]
    return [f"`{name}`", *(round(value, 2) for value in (*first, *least))]


def main() -> None:
    """Print the times of all commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", default="", help="a part of the commands to time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        row(name, words, options.repeats)
        for name, words in COMMANDS.items()
        if options.only in name
    ]
    if options.json:
        print(json.dumps({"heads": HEADS, "left": 1, "rows": rows}))
        return
    for values in (HEADS, *rows):
        print("  ".join(f"{value!s:>12}" for value in values))


if __name__ == "__main__":
    main()
