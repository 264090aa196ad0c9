"""A page states no measurement that `make numbers` does not write."""

import json
import re

import pytest
from pages import DOCS, ROOT, parses

BENCH = sorted((ROOT / "results" / "bench").glob("*.json"))
PAGES = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted(DOCS.glob("*.md"))]

LEFT_OUT = [
    r"<!-- numbers: .*?<!-- end of numbers -->",
    r"^ *```.*?^ *```$",
    r"!\[.*?\]\(.*?\)",
    r"`[^`]*`",
    r"(?:[\d.,]+(?: ± [\d.]+)?|[A-Za-z]+)<!-- = .*?-->",
]
"""What `make numbers` writes, what tests run, pictures and code."""
NUMBER = r"(?<![\w.,])(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
UNITS = (
    r"(?:ms|µs|s|seconds?|minutes?|kB|[MGT]B|[MG]iB|%|times|points|TFLOP/s"
    r"|Gbit/s|(?:million |M )?(?:\w+ )?per second)"
)
MEASUREMENT = re.compile(rf"{NUMBER} ?{UNITS}(?!\w)|{NUMBER} ± {NUMBER}")
DECIMAL_CELL = re.compile(r"\| \**(?:\d[\d,]*)?\.\d+(?: ± [\d.]+)?\**(?= \|)")

NO_MEASUREMENT = {
    "batches.md": [
        "less than 40 % of the free memory",
        "more than 60 % of the free memory",
    ],
    "distributed.md": ["50 µs of latency", "do not help at 10 Gbit/s"],
    "measures.md": ["the middle 95 %"],
    "new-nodes.md": [
        "make 256 MB",
        "30 neighbours per second",
        "99 % of them within",
    ],
    "own-graph.md": ["the extreme 0.1 % on each side"],
    "pyg.md": ["take 0.8 GB (41,554 × 4,814)"],
    "reliability.md": ["must arrive within 30 seconds"],
    "start.md": ["23 % of the edges", "20 % would be expected"],
    "tutorial.md": [
        "right in 80 % of cases",
        "above 90 %",
        "82 % of the women and 77 % of the men",
    ],
    "which-method.md": ["one node is 2.7 points"],
    "wiki.md": ["| 7 minutes |", "10 GB for the paper's size"],
}
"""Limits, settings, arithmetic, and what the output on the same page shows."""


def prose(page):
    """The text of a page without code, pictures and numbers that have a source."""
    text = page.read_text("utf-8")
    for form in LEFT_OUT:
        text = re.sub(form, " ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def measurements(page):
    """Numbers with a unit or a deviation, and tables of decimals."""
    text = " ".join(prose(page).split())
    for phrase in NO_MEASUREMENT.get(page.name, ()):
        text = text.replace(phrase, "")
    found = [*MEASUREMENT.finditer(text), *DECIMAL_CELL.finditer(text)]
    return [text[max(0, m.start() - 40) : m.end() + 20] for m in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_states_no_measurement_without_a_source(page):
    found = "\n".join(measurements(page))
    assert not found, f"store it in results/bench, or list it here:\n{found}"


def unnamed_older_measurements(page):
    """Bench files of older numbers that a page uses without naming their commit."""
    text = " ".join(page.read_text("utf-8").split())
    used = set(re.findall(r"<!-- = (?:file bench/|bench )([\w-]+)", text))
    used |= {"stacks-h200"} if "<!-- = stacks " in text else set()
    older = [file for file in BENCH if file.stem in used]
    contents = {file.stem: json.loads(file.read_text("utf-8")) for file in older}
    return [
        name
        for name, found in contents.items()
        if "taken_from" in found
        and f"an older measurement, of commit {found['commit'][:7]}" not in text
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_which_numbers_are_older_measurements(page):
    assert unnamed_older_measurements(page) == []


def test_an_older_measurement_without_its_commit_is_noticed(tmp_path):
    (tmp_path / "page.md").write_text("In 1<!-- = file bench/import-edges minutes -->")
    assert unnamed_older_measurements(tmp_path / "page.md") == ["import-edges"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_phrases_that_are_allowed_are_on_their_page(page):
    text = " ".join(prose(page).split())
    assert [x for x in NO_MEASUREMENT.get(page.name, ()) if x not in text] == []


@pytest.mark.parametrize(
    "text",
    [
        "An epoch takes 7.1 ms.",
        "It needs 3 GB.",
        "55 times as fast",
        "accuracy 59.2 ± 0.4",
        "979 million edges per second",
        "| texas | 71.1 |",
        "It goes from 13.7 % to 2<!-- = count runs --> %.",
    ],
)
def test_a_measurement_without_a_source_is_noticed(text, tmp_path):
    (tmp_path / "page.md").write_text(text, "utf-8")
    assert measurements(tmp_path / "page.md")


@pytest.mark.parametrize(
    "text",
    [
        "An epoch takes 7.1<!-- = bench engine-h200 linkx 128 ms --> ms.",
        "<!-- numbers: twins -->\n| a | 7.1 |\n<!-- end of numbers -->",
        "```text\naccuracy 59.2 ± 0.4\n```",
        "one of 10 splits, hidden 128",
    ],
)
def test_numbers_with_a_source_and_settings_are_no_measurements(text, tmp_path):
    (tmp_path / "page.md").write_text(text, "utf-8")
    assert not measurements(tmp_path / "page.md")


@pytest.mark.parametrize("file", BENCH, ids=lambda file: file.stem)
def test_the_command_of_a_bench_file_exists(file, monkeypatch):
    program, *words = json.loads(file.read_text("utf-8"))["command"].split()
    if program == "unalike":
        assert parses(words, monkeypatch)
    else:
        assert program == "python"
        assert any((ROOT / word).is_file() for word in words)
