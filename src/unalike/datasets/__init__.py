"""DATASETS: every dataset by its name, and how to find one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from unalike.datasets import facebook100, heterophilous
from unalike.datasets.dataset import Dataset
from unalike.datasets.deezer_europe import DEEZER_EUROPE
from unalike.datasets.genius import GENIUS
from unalike.datasets.oeis import OEIS
from unalike.datasets.ogb import ARXIV_YEAR, OGBN_ARXIV, OGBN_PRODUCTS
from unalike.datasets.planetoid import PLANETOID
from unalike.datasets.pokec import POKEC
from unalike.datasets.root import data_root
from unalike.datasets.small_six import SMALL_SIX
from unalike.datasets.snap_patents import SNAP_PATENTS
from unalike.datasets.twins import TWINS
from unalike.datasets.twitch_explicit import TWITCH_EXPLICIT
from unalike.datasets.twitch_gamers import TWITCH_GAMERS
from unalike.datasets.wiki import WIKI
from unalike.datasets.yelp_chi import YELP_CHI
from unalike.errors import UserError, did_you_mean
from unalike.graph import Graph
from unalike.metrics import Metric
from unalike.progress import SILENT, Progress
from unalike.split import Split
from unalike.store import open_graph

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        facebook100.PENN94,
        POKEC,
        ARXIV_YEAR,
        SNAP_PATENTS,
        GENIUS,
        TWITCH_GAMERS,
        WIKI,
        *SMALL_SIX,
        *PLANETOID,
        OGBN_ARXIV,
        OGBN_PRODUCTS,
        OEIS,
        *heterophilous.HETEROPHILOUS,
        *TWITCH_EXPLICIT,
        DEEZER_EUROPE,
        YELP_CHI,
        *facebook100.OTHER_SCHOOLS,
    )
}


@runtime_checkable
class Source(Protocol):
    """Whatever a graph with splits and a metric comes from."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> Metric: ...

    def load(self) -> Graph:
        """The graph as it is stored."""

    def prepared(self, *, progress: Progress = SILENT) -> Graph:
        """The graph as methods are given it."""

    def splits(self) -> list[Split]:
        """Its splits."""

    def remarks(self) -> list[str]:
        """What somebody who uses the graph should know about this copy of it."""


@runtime_checkable
class Placed(Source, Protocol):
    """A source that keeps its files in a data root."""

    def at(self, data: Path | None) -> Source:
        """The same in another data root."""


TABLES: tuple[Mapping[str, Placed], ...] = (DATASETS, TWINS)


def find(name: str, data: Path | None = None) -> Source:
    """What a name stands for: a dataset, a file in the data root, or a stored graph."""
    for table in TABLES:
        if name in table:
            return table[name].at(data)
    if (Path(name) / "graph.json").is_file() or "/" in name:
        return open_graph(Path(name))
    here = dict(discover(data_root(data)))
    if name in here:
        return here[name].at(data)
    hint = did_you_mean(name, (*DATASETS, *TWINS, *here))
    raise UserError(
        f"No dataset '{name}'.{hint} "
        "`unalike list datasets` and `unalike list twins` name them all."
    )


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Graphs in a data root that no table names, by the names of their files."""
    for family in (facebook100, heterophilous):
        for name, dataset in family.discover(root):
            if name not in DATASETS:
                yield name, dataset


def load(name: str, data: Path | None = None) -> Graph:
    """The graph that a name stands for."""
    return find(name, data).load()
