"""Try thousands of broken inputs of every family, and count what happened.

python benchmarks/faults.py --json
python benchmarks/faults.py --seed 100000 --json

Runs `make fault-test`; without --json the output of pytest is shown too.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run the fault tests and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.json"
        words = ["-m", "slow", "tests/faults", "--seed", str(options.seed)]
        subprocess.run(
            [sys.executable, "-m", "pytest", *words, "--outcomes", str(outcomes)],
            cwd=ROOT,
            stdout=sys.stderr if options.json else None,
        )
        document = json.loads(outcomes.read_text("utf-8"))
    if options.json:
        print(json.dumps(document))
        return
    for name, counts in document["families"].items():
        print(f"{name:<16}{counts['cases']:>7} cases, {counts['failed']} tests failed")


if __name__ == "__main__":
    main()
