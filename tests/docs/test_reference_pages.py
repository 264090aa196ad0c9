"""The pages of methods and datasets have a section for each of them."""

import re

import pytest
from pages import DOCS

from unalike.datasets.registry import DATASETS
from unalike.methods import METHODS
from unalike.options import options_of

LISTED = [name for name, one in DATASETS.items() if not one.list_only_if_present]


def sections(page):
    text = (DOCS / f"{page}.md").read_text("utf-8")
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {part.partition("\n")[0]: part for part in parts}


def test_every_method_and_listed_dataset_has_a_section():
    assert list(sections("methods")) == list(METHODS)
    assert list(sections("datasets")) == LISTED


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_use_cost_options_and_paper(name):
    section = sections("methods")[name]
    assert METHODS[name].suits
    for part in ("Try it where", "Kind", "Cost", "Paper"):
        assert f"- **{part}" in section
    shared = {*options_of(METHODS["link"](), omit=False), "base"}
    for option in options_of(METHODS[name](), omit=False).keys() - shared:
        if f"base_{option}" not in section and name != "correct-and-smooth":
            assert f"{option.replace('_', '-')}`" in section


@pytest.mark.parametrize("name", LISTED)
def test_a_dataset_has_its_numbers_split_licence_and_citation(name):
    section = sections("datasets")[name]
    for part in ("| nodes |", "**Split:**", "**Licence:**", "**Citation:**"):
        assert part in section
    assert DATASETS[name].licence in section.replace("\\", "")
