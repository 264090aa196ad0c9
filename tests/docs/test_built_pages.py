"""The documentation builds without a warning, and asks nobody else for anything."""

import os
import re
import subprocess
import sys

import pytest
from pages import PAGES, ROOT

from unalike import DATASETS, METHODS

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")

pytestmark = pytest.mark.docs

LOADED = re.compile(
    r"""(?:src|srcset|data|poster)=["']?(?:https?:)?//|"""
    r"""<link[^>]+href=["']?(?:https?:)?//|@import|url\(["']?(?:https?:)?//"""
)
"""Whatever makes a browser ask another machine; a link that is clicked does not."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, *build],
        cwd=ROOT,
        env=quiet,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built_and_in_the_menu(site):
    menu = (site / "index.html").read_text("utf-8")
    for page in PAGES:
        assert (site / f"{page.stem}.html").is_file()
        assert f'href="{page.stem}.html' in menu or page.stem == "index"


def test_every_method_and_dataset_has_a_page_and_a_link_to_it(site):
    for folder, names in (("methods", METHODS), ("datasets", DATASETS)):
        overview = (site / f"{folder}.html").read_text("utf-8")
        for name in names:
            assert (site / folder / f"{name}.html").is_file()
            listed = folder == "methods" or not DATASETS[name].list_only_if_present
            cell = rf'<td[^>]*><a href="{folder}/{name}\.html">'
            assert not listed or re.search(cell, overview)


def test_pages_ask_nobody_for_anything(site):
    for file in [*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.svg")]:
        assert not LOADED.search(file.read_text("utf-8")), file


def test_the_reference_tells_what_names_are(site):
    text = (site / "api.html").read_text("utf-8")
    assert "A graph from pairs of node ids" in text
    assert "Width of every hidden layer" in text
