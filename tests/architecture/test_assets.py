"""What every script of the page keeps to."""

import re

from unalike.reports.site.writer import assets

SCRIPTS = {
    path: asset.read_text("utf-8")
    for path, asset in assets()
    if path.endswith(".js") and "/vendor/" not in path
}
MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
LINES, WIDTH = 200, 100


def test_scripts_say_what_they_are_and_are_short():
    for path, text in SCRIPTS.items():
        first, second, *_ = text.splitlines()
        assert first == '"use strict";', path
        noun = path.removeprefix("assets/").removesuffix(".js").capitalize()
        assert re.match(rf"// {noun}: .*\.$", second), path
        assert text.count("\n") <= LINES, path
        assert max(map(len, text.splitlines())) <= WIDTH, path


def test_no_script_makes_markup_of_text():
    assert not [
        (path, word)
        for path, text in SCRIPTS.items()
        for word in MARKUP
        if word in text
    ]


def test_the_page_loads_every_script_and_nothing_from_elsewhere():
    page = dict(assets())["index.html"].read_text("utf-8")
    assert set(re.findall(r'src="([^"]+)"', page)) == {*SCRIPTS, "data/site.js"}
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
