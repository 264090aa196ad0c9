"""Numbers of README, docs and results are those of stored runs and bench files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "page_numbers.py"
PAGES = [ROOT / "README.md", ROOT / "results" / "README.md", *ROOT.glob("docs/*.md")]


@pytest.mark.long
def test_numbers_of_pages_are_those_of_the_stored_runs(stored_runs):
    words = [SCRIPT, "--check", "--results", stored_runs]
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make numbers`\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_source_of_a_number_follows_a_number(page):
    text = page.read_text("utf-8")
    numbers = re.findall(r"[\da-z]<!-- = [a-z-]+ [^>]+ -->", text)
    assert len(numbers) == text.count("<!-- = ")
    assert text.count("<!-- numbers: ") == text.count("<!-- end of numbers -->")


def test_bench_files_name_command_date_device_versions_and_commit():
    files = list((ROOT / "results" / "bench").glob("*.json"))
    assert len(files) >= 20
    for file in files:
        found = json.loads(file.read_text("utf-8"))
        assert found["command"], file
        assert found["device"], file
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", found["date"]), file
        assert re.fullmatch(r"[0-9a-f]{40}", found["commit"]), file
        # Older numbers were taken from a page; the versions were not noted.
        assert found.get("taken_from") or found["versions"]["torch"], file


def test_a_number_word_of_two_parts_is_replaced_as_a_whole(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from page_numbers import rewrite_inline

    class Counted:
        def value(self, source):
            return 26

    text = "runs twenty-six<!-- = count methods --> methods"
    assert rewrite_inline(text, Counted()) == text
    assert rewrite_inline(text.replace("twenty-six", "eight"), Counted()) == text
