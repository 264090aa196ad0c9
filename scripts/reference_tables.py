"""Overviews in docs/methods.md and docs/datasets.md, and tables of results."""

from collections.abc import Callable, Iterator

from number_sources import Sources
from reference_pages import (
    dataset_counts,
    escaped,
    listed_datasets,
    needs,
    samplers_of,
)

from unalike.datasets.registry import DATASETS
from unalike.methods import METHODS


def method_overview(sources: Sources) -> str:
    """A row for each method: its kind, its inputs and where it is worth trying."""
    return "\n".join(method_rows()) + "\n"


def method_rows() -> Iterator[str]:
    yield "\n| method | kind | needs | minibatches | try it where |"
    yield "| :-- | :-- | :-- | :-- | :-- |"
    for name, kind in METHODS.items():
        batches = "yes" if samplers_of(kind) else "no"
        inputs = ", ".join(list(needs(kind))[:-1])
        suits = escaped(kind.suits)
        yield f"| `{name}` | {kind.family} | {inputs} | {batches} | {suits} |"


def dataset_overview(sources: Sources) -> str:
    """A row for each listed dataset: its size, its licence and what it is."""
    return "\n".join(dataset_rows()) + "\n"


def dataset_rows() -> Iterator[str]:
    yield "\n| dataset | nodes | edges | features | classes | licence | what it is |"
    yield "| :-- | --: | --: | --: | --: | :-- | :-- |"
    for name in listed_datasets():
        one = DATASETS[name]
        cells = [*dataset_counts(one), escaped(one.licence), escaped(one.about)]
        yield f"| `{name}` | {' | '.join(cells)} |"


def results_table(name: str) -> Callable[[Sources], str]:
    """The table of a file of results/, which `make numbers` writes too."""
    return lambda sources: sources.tables[name]


REFERENCE_BLOCKS = {
    "methods": method_overview,
    "datasets": dataset_overview,
    **{
        f"results {name}": results_table(name)
        for name in (
            *("prior-datasets", "homophilous", "full-batch"),
            *("facebook100", "minibatch", "since-2021"),
        )
    },
}
"""Functions of the blocks of docs/methods.md, datasets.md and leaderboard.md."""
