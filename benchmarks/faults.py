"""Try thousands of broken inputs of every family, and count what happened.

python benchmarks/faults.py --json
python benchmarks/faults.py --few --seed 100000 --json
python benchmarks/faults.py --keep build/faults.json --json

Runs `make fault-test`, or with --few the cases that are part of `make test`. Without
--json the output of pytest is shown too. With --keep, tests whose outcome is in the
file do not run again: a run that was stopped goes on.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


def run_tests(path: Path, words: list[str], output: int | None) -> dict[str, dict]:
    """Run the tests whose outcome is not in a file; the outcomes of all tests."""
    words = ["-n", "2", "tests/faults", "--outcomes", str(path), *words]
    subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, stdout=output)
    return json.loads(path.read_text("utf-8"))


def family_of(test: str) -> str:
    """The name of a test file, such as stored-graphs."""
    name = Path(test.partition("::")[0]).stem
    return name.removeprefix("test_").replace("_", "-")


def summary(tests: dict[str, dict]) -> dict[str, object]:
    """Counts of each family and of all, with their seeds and commits."""
    families: dict[str, dict] = {}
    empty = {"tests": 0, "cases": 0, "failed": 0, "minutes": 0.0}
    for name, outcome in sorted(tests.items()):
        family = families.setdefault(family_of(name), {**empty})
        family["tests"] += 1
        for count in ("cases", "failed", "minutes"):
            family[count] += outcome[count]
    totals = {name: sum(family[name] for family in families.values()) for name in empty}
    sources = {
        f"{name}s": sorted({outcome[name] for outcome in tests.values()})
        for name in ("seed", "commit")
    }
    return {"families": families, **totals, **sources}


def main() -> None:
    """Run the fault tests and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--few", action="store_true", help="the cases of make test")
    parser.add_argument("--keep", type=Path, help="a file for outcomes of tests")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = (options.keep or Path(folder) / "outcomes.json").resolve()
        output = sys.stderr.fileno() if options.json else None
        marker = "not slow" if options.few else "slow"
        words = ["-m", marker, "--seed", str(options.seed)]
        document = summary(run_tests(path, words, output))
    if options.json:
        print(json.dumps(document))
        return
    for name, counts in document["families"].items():
        print(f"{name:<16}{counts['cases']:>7} cases, {counts['failed']} tests failed")


if __name__ == "__main__":
    main()
