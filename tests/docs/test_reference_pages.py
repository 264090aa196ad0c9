"""Every method and dataset has a page, made from its code, and a row in an overview."""

import re
import sys
from types import SimpleNamespace

import pytest
from pages import DOCS, ROOT, commands, parses

from unalike.datasets.registry import DATASETS
from unalike.methods import METHODS
from unalike.options import choices, options_of
from unalike.samplers import SAMPLERS

sys.path.insert(0, str(ROOT / "scripts"))
reference = pytest.importorskip("reference_pages")
sys.path.pop(0)

LISTED = [name for name, one in DATASETS.items() if not one.list_only_if_present]


def first_cells(page):
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)


def test_every_method_and_listed_dataset_is_in_an_overview():
    assert first_cells("methods") == list(METHODS)
    assert first_cells("datasets") == LISTED


def test_names_in_an_overview_are_linked_to_their_pages():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="methods.md"))
    row = "| `gcn` | message passing |"
    linked = "| [gcn](methods/gcn.md) | message passing |"
    assert reference.on_page_markdown(row, page) == linked
    page.file.src_uri = "views.md"
    assert reference.on_page_markdown(row, page) == row


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_page_with_its_use_options_batches_and_example(
    name, monkeypatch
):
    page = reference.method_page(name)
    assert page.startswith(f"# {name}\n")
    assert METHODS[name].suits
    for part in ("Try it where", "Kind", "Needs", "Cost", "Paper"):
        assert f"- **{part}" in page
    inside = {
        option
        for field, kinds in choices(METHODS[name]).items()
        if field != "batching"
        for option in options_of(getattr(METHODS[name](), field), omit=False)
    }
    documents = reference.field_documents(METHODS[name])
    for option in options_of(METHODS[name](), omit=False).keys() - inside:
        if option not in choices(METHODS[name]):
            assert f"{option.replace('_', '-')}`" in page
            assert option not in documents or documents[option]
    for sampler in reference.samplers_of(METHODS[name]):
        assert f"### {sampler}\n" in page
        for option in options_of(SAMPLERS[sampler](), omit=False):
            assert f"{option.replace('_', '-')}`" in page
    assert_commands_parse(page, monkeypatch)


@pytest.mark.parametrize("name", [*LISTED, "cornell5"])
def test_a_dataset_has_a_page_with_its_numbers_split_licence_and_citation(
    name, monkeypatch
):
    page = reference.dataset_page(name)
    assert page.startswith(f"# {name}\n")
    for part in ("| nodes |", "**Split:**", "**Licence:**", "**Citation:**"):
        assert part in page
    assert DATASETS[name].licence in page.replace("\\", "")
    assert all(file.path in page for file in DATASETS[name].files)
    assert_commands_parse(page, monkeypatch)


def assert_commands_parse(page, monkeypatch):
    """The commands of an example are taken by the command line."""
    (example,) = re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    found = list(commands(example))
    assert len(found) >= 2
    for words in found:
        assert parses(words, monkeypatch), words
