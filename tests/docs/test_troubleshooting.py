"""The errors that the documentation shows are those that people see."""

import re

import pytest
from pages import DOCS, blocks, commands, shell

from unalike.cli.main import main

PAGE = DOCS / "troubleshooting.md"
SHOWN = re.compile(r"```console\n(.*?)```\n\n```text\n(error: .*?)\n```", re.DOTALL)


@pytest.mark.docs
def test_errors_are_as_shown(tmp_path, monkeypatch, capsys):
    shell("\n".join(blocks(PAGE, "sh")), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNALIKE_DATA", str(tmp_path / "data"))
    pairs = SHOWN.findall(PAGE.read_text("utf-8"))
    assert len(pairs) > 5
    for console, output in pairs:
        *before, last = commands(console)
        assert all(main(words) == 0 for words in before)
        assert main(last) == 1
        said = capsys.readouterr().err.replace(f"{tmp_path}/", "")
        assert said == f"{output}\n"
