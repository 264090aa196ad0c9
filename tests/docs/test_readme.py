"""The commands and the Python of the README run; the tree of files is up to date."""

import re
import subprocess
import sys

import pytest
from pages import ROOT, blocks, commands, parses, python, shell, spans

LINES = 150
README = (ROOT / "README.md").read_text("utf-8")


def section(title):
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(text, language):
    return re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1]


def test_the_readme_is_short():
    assert README.count("\n") <= LINES


@pytest.mark.docs
def test_your_own_graph(tmp_path):
    done = shell(block(section("Your own graph"), "sh"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "on the test nodes" in done.stdout
    assert (tmp_path / "shop" / "graph.json").is_file()


@pytest.mark.docs
def test_a_graph_of_the_paper(tmp_path, data):
    script = block(section("A graph of the paper"), "sh")
    script = re.sub(r"^unalike fetch.*\n", "", script, flags=re.MULTILINE)
    script = script.replace("--hidden 128", "--hidden 8 --epochs 3 --splits 0")
    done = shell(script, tmp_path, UNALIKE_DATA=str(data))
    assert done.returncode == 0, done.stderr
    assert "chameleon linkx: accuracy" in done.stdout
    assert (tmp_path / "compatibility.png").stat().st_size > 10_000


@pytest.mark.docs
def test_python_blocks_run(tmp_path):
    assert not python("\n".join(blocks(ROOT / "README.md", "python")), tmp_path)


def test_commands_in_consoles_and_sentences_exist(monkeypatch, capsys):
    page = ROOT / "README.md"
    shown = [*blocks(page, "console"), *spans(page)]
    for words in (words for code in shown for words in commands(code)):
        assert parses(words, monkeypatch), f"{words}\n{capsys.readouterr().err}"


def test_the_tree_of_files_is_up_to_date():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tree.py", "--check"], check=False
    )
    assert checked.returncode == 0, "run `make tree`"
