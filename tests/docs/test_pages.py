"""Every page of the documentation is true: its code runs, its commands exist."""

import re

import pytest
from pages import (
    DOCS,
    PAGES,
    ROOT,
    blocks,
    commands,
    needs_data,
    parses,
    python,
    shell,
    spans,
)
from shown_output import MARK, differences, shown_outputs

import unalike
import unalike.warehouse

PROJECT = sorted(ROOT.glob("*.md"))
KINDS = {"python", "sh", "console", "text", "toml", "csv"}
"""Python and sh are run here, consoles by test_consoles.py. Text directly after a block
of code is its output; the rest is to read."""


LONG = {"distributed"}
"""Pages that run for more than a minute."""


def having(language):
    """The pages with a block of a language, as parameters of a test."""
    found = [
        pytest.param(
            page,
            id=page.stem,
            marks=[pytest.mark.docs, *[pytest.mark.slow] * (page.stem in LONG)],
        )
        for page in PAGES
        if blocks(page, language)
    ]
    return pytest.mark.parametrize("page", found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_are_of_a_known_kind(page):
    opened = re.findall(r"^ *```(.*)$", page.read_text("utf-8"), re.MULTILINE)[::2]
    assert {output.split(" ")[0] for output in opened} <= KINDS


@having("python")
def test_python_blocks_run_and_print_what_is_shown(page, tmp_path):
    code = blocks(page, "python")
    assert not python("\n".join(f"{x}\nprint({MARK!r})" for x in code), tmp_path)
    printed = (tmp_path / "said.txt").read_text("utf-8")
    found = differences(code, shown_outputs(page, "python"), printed)
    assert not found, found


@having("sh")
def test_shell_blocks_run_and_print_what_is_shown(page, tmp_path, request):
    code = blocks(page, "sh")
    script = "\n".join(["exec 2>&1", *(f"{x}\necho {MARK!r}" for x in code)])
    known = request.getfixturevalue("data") if needs_data(script) else tmp_path / "data"
    done = shell(script, tmp_path, UNALIKE_DATA=str(known), COLUMNS="160")
    assert done.returncode == 0, done.stdout
    found = differences(code, shown_outputs(page, "sh"), done.stdout)
    assert not found, found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_are_shown_exist(page, monkeypatch, capsys):
    shown = [*blocks(page, "console"), *spans(page)]
    for words in (words for code in shown for words in commands(code)):
        assert parses(words, monkeypatch), f"{words}\n{capsys.readouterr().err}"


def test_commands_that_do_not_exist_are_noticed(monkeypatch):
    [good], [bad] = (
        list(commands(f"$ unalike measure texas {flag} | head"))
        for flag in ("--json", "--jason")
    )
    assert parses(good, monkeypatch)
    assert not parses(bad, monkeypatch)


@pytest.mark.parametrize("page", [*PAGES, *PROJECT], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_the_reference_names_every_public_name():
    output = re.findall(
        r"^::: unalike\.(\S+)", (DOCS / "api.md").read_text("utf-8"), re.M
    )
    public = {*unalike.__all__, *unalike.warehouse.__all__} - {"__version__"}
    assert public == {name.split(".")[-1] for name in output}
