"""Run a benchmark and store its JSON output as a file of results/bench.

python scripts/store_bench.py predict-cpu python benchmarks/predict.py --json
python scripts/store_bench.py --note "a busy machine" scale unalike bench scale --json

The file also has the command, the commit, the date, the device and the versions.
`make numbers` then writes the numbers of the pages from it.
"""

import argparse
import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from unalike.device import best_device, commit, device_name, versions

BENCH = Path(__file__).parents[1] / "results" / "bench"
PROGRAMS = {"python": [sys.executable], "unalike": [sys.executable, "-m", "unalike"]}


def run(words: list[str]) -> dict[str, object]:
    """The JSON document that a command prints."""
    program, *arguments = words
    command = [*PROGRAMS[program], *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main() -> None:
    """Run the command and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--note", help="what else ran on the machine")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    source = {
        "command": shlex.join(options.command),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "device": device_name(best_device()),
        "versions": versions(),
    }
    if options.note:
        source["note"] = options.note
    path = BENCH / f"{options.name}.json"
    text = json.dumps({**source, **run(options.command)}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
