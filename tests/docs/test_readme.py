"""The README is true: its commands run, its Python runs, its tree is the tree."""

import re
import subprocess
import sys

import pytest
from pages import ROOT, blocks, python, shell

README = (ROOT / "README.md").read_text("utf-8")


def section(title):
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(text, language):
    return re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1]


@pytest.mark.docs
def test_a_graph_of_your_own(tmp_path):
    done = shell(block(section("A graph of your own"), "sh"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "class homophily" in done.stdout
    assert "on the test nodes" in done.stdout
    assert (tmp_path / "shop" / "graph" / "graph.json").is_file()


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


def test_the_tree_is_the_tree():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tree.py", "--check"], check=False
    )
    assert checked.returncode == 0, "run `make tree`"
