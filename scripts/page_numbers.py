"""Rewrite the numbers of README, docs and results from stored runs and bench files.

python scripts/page_numbers.py          rewrite the pages and the tables of results/
python scripts/page_numbers.py --check  print the differences and exit with 1

A number is followed by a comment with its source: `54.0 ± 0.2<!-- = ours
full-batch/link arxiv-year -->`. Its digits stay as they are written. A whole table is
between `<!-- numbers: NAME -->` and `<!-- end of numbers -->`.
"""

import argparse
import difflib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from number_sources import RESULTS, ROOT, Sources, Value
from page_tables import BLOCKS, rounded
from reference_tables import REFERENCE_BLOCKS

from unalike.cli.main import main as unalike

PAGES = [
    ROOT / "README.md",
    RESULTS / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
INLINE = re.compile(
    r"(?P<value>(?:\d[\d,]*)?\.?\d+(?: ± (?:\d+)?\.?\d+)?|[A-Za-z]+(?:-[a-z]+)*)"
    r"<!-- = (?P<source>[^>]+?) -->"
)
BLOCK = re.compile(
    r"(<!-- numbers: (.+?) -->\n).*?(<!-- end of numbers -->)", re.DOTALL
)
UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
    *("seventeen", "eighteen", "nineteen"),
)
TENS = {2: "twenty", 3: "thirty", 4: "forty", 5: "fifty"}

SIBLINGS = ("--on", "cornell5", "wisconsin87")
TABLE_FILES = {
    "prior-datasets": ("prior-datasets",),
    "full-batch": ("full-batch",),
    "homophilous": ("homophilous",),
    "minibatch": ("minibatch", "--on", "cornell5"),
    "facebook100": ("full-batch", *SIBLINGS),
}
"""Words after `unalike table --settings any` for every table in results/."""


# Numbers in sentences.


def rewrite_inline(text: str, sources: Sources) -> str:
    """The text with every number that has a source replaced by its value."""

    def replaced(match: re.Match[str]) -> str:
        value = sources.value(match["source"])
        return f"{formatted(value, match['value'])}<!-- = {match['source']} -->"

    return INLINE.sub(replaced, text)


def formatted(value: Value, written: str) -> str:
    """A value with the digits, the deviation or the words that were written."""
    if written[0].isalpha():
        word = in_words(int(first(value)))
        return word.capitalize() if written[0].isupper() else word
    numbers = value if isinstance(value, tuple) else (value,)
    parts = written.split(" ± ")
    return " ± ".join(
        one_number(number, part) for number, part in zip(numbers, parts, strict=False)
    )


def in_words(number: int) -> str:
    """A number below sixty in words."""
    tens, units = divmod(number, 10)
    if tens < 2:
        return UNITS[number]
    return f"{TENS[tens]}-{UNITS[units]}" if units else TENS[tens]


def one_number(number: float, written: str) -> str:
    """A number with as many decimals as before, and a leading zero only if before."""
    decimals = len(written.partition(".")[2])
    text = rounded(number, decimals)
    return text.removeprefix("0") if written.startswith(".") else text


def first(value: Value) -> float:
    return value[0] if isinstance(value, tuple) else value


def rewrite_blocks(text: str, sources: Sources) -> str:
    """The text with the tables between markers made anew."""
    return BLOCK.sub(
        lambda m: m[1] + (BLOCKS | REFERENCE_BLOCKS)[m[2]](sources) + m[3], text
    )


def table_text(words: Sequence[str], database: str, data: Path) -> str:
    """A table of results in Markdown."""
    options = ["--settings", "any", "--format", "markdown"]
    places = ["--results", database, "--data", str(data)]
    with redirect_stdout(out := StringIO()):
        assert unalike(["table", *words, *options, *places]) == 0
    return out.getvalue()


def without_reasons(table: str) -> str:
    """A table whose empty cells have one note; reasons depend on the files at hand."""
    lines = [line for line in table.splitlines() if ": no data, " not in line]
    return "\n".join([*lines, "- –: not run.", ""])


def with_views(path: Path, folder: Path) -> str:
    """A copy of a database of results/runs.jsonl.gz that has results/views.jsonl.gz."""
    copied = shutil.copy(path, folder / "all.db")
    database = f"sqlite:///{copied}"
    import_runs("views", database)
    return database


def import_runs(name: str, database: str) -> None:
    """Import the stored runs of a file of results/."""
    file = str(RESULTS / f"{name}.jsonl.gz")
    with redirect_stdout(StringIO()):
        assert unalike(["results", "import", file, "--results", database]) == 0


def new_texts(database: str, folder: Path) -> dict[Path, str]:
    """The new contents of all pages and tables."""
    # The runs were made with the edges and years of arxiv-year, without features.
    data = folder / "data"
    (data / "arxiv-year").mkdir(parents=True)
    for name in ("edge", "node_year"):
        (data / "arxiv-year" / f"{name}.csv.gz").touch()
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    later = f"sqlite:///{folder / 'since-2021.db'}"
    import_runs("since-2021", later)
    tables = {
        name: table_text(words, database, data) for name, words in TABLE_FILES.items()
    }
    tables["since-2021"] = without_reasons(table_text(["since-2021"], later, data))
    sources = Sources(database, data, later, tables)
    texts = {
        page: rewrite_inline(rewrite_blocks(page.read_text("utf-8"), sources), sources)
        for page in PAGES
    }
    return texts | {RESULTS / f"{name}.md": text for name, text in tables.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--results", type=Path, help="an SQLite file with results/runs.jsonl.gz"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = options.results
        if path is None:
            path = folder / "results.db"
            import_runs("runs", f"sqlite:///{path}")
        texts = new_texts(with_views(path, folder), folder)
    changed = {p: t for p, t in texts.items() if t != p.read_text("utf-8")}
    for path, text in changed.items():
        old = path.read_text("utf-8").splitlines()
        lines = difflib.unified_diff(old, text.splitlines(), lineterm="", n=0)
        named = [str(path.relative_to(ROOT)), *list(lines)[2:]]
        sys.stdout.write("\n".join(named) + "\n")
        if not options.check:
            path.write_text(text, "utf-8")
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
