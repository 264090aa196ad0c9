"""Rules for the scripts of the report page."""

import re

import pytest

from unalike.reports.site.writer import static_assets

SCRIPTS = {
    path: content.decode()
    for path, content in static_assets().items()
    if path.endswith(".js")
}
MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
WIDTH = 100


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_script_is_strict_and_begins_with_one_sentence_about_itself(path):
    first, second, third, *_ = SCRIPTS[path].splitlines()
    assert first == '"use strict";'
    assert re.match(r"// [A-Z].*\.$", second)
    assert third == ""


@pytest.mark.parametrize("path", SCRIPTS)
def test_lines_of_a_script_are_short(path):
    assert max(map(len, SCRIPTS[path].splitlines())) <= WIDTH


def test_no_script_makes_markup_of_text():
    assert not [
        (path, word)
        for path, text in SCRIPTS.items()
        for word in MARKUP
        if word in text
    ]


def test_the_page_loads_every_script_and_nothing_from_elsewhere():
    page = static_assets()["index.html"].decode()
    assert set(re.findall(r'src="([^"]+)"', page)) == {*SCRIPTS, "data/site.js"}
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)


def test_the_repository_holds_no_minified_script():
    assert not [path for path in static_assets() if ".min." in path]
