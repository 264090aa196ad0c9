"""The README is true: its commands run, its Python runs, its tree is the tree."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def section(title):
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(text, language):
    return re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1]


def environment(folder, **more):
    here = Path(sys.executable).parent
    path = f"{here}{os.pathsep}{os.environ['PATH']}"
    kept = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": path}
    return {**os.environ, **kept, **more}


def shell(script, folder, **more):
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_graph_of_your_own(tmp_path):
    done = shell(block(section("A graph of your own"), "sh"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "class homophily" in done.stdout
    assert "on the test nodes" in done.stdout
    assert (tmp_path / "shop" / "graph" / "graph.json").is_file()


def test_a_graph_of_the_paper(tmp_path, data):
    script = block(section("A graph of the paper"), "sh")
    script = re.sub(r"^unalike fetch.*\n", "", script, flags=re.MULTILINE)
    script = script.replace("--hidden 128", "--hidden 8 --epochs 3 --splits 0")
    done = shell(script, tmp_path, UNALIKE_DATA=str(data))
    assert done.returncode == 0, done.stderr
    assert "chameleon linkx: accuracy" in done.stdout
    assert (tmp_path / "compatibility.png").stat().st_size > 10_000


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(document, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", document.read_text("utf-8"), re.DOTALL)
    if not blocks:
        pytest.skip("no Python in it")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env=environment(tmp_path, UNALIKE_DATA=str(tmp_path / "data")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_tree_is_the_tree():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tree.py", "--check"], check=False
    )
    assert checked.returncode == 0, "run `make tree`"


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted(ROOT.glob("*.md"))], ids=str)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), target
