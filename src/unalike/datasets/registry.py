"""Table of all datasets, lookup by name, discovery in the data root, and listing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY, Metric
from unalike.data.regression import default_metric
from unalike.data.split import Split, random_splits
from unalike.data.store import (
    SCALE_FIRST,
    UNSCALED,
    GraphSource,
    StoredGraph,
    differ_in_scale,
    open_graph,
)
from unalike.datasets import facebook100, heterophilous
from unalike.datasets.base import Dataset
from unalike.datasets.geom_gcn import GEOM_GCN
from unalike.datasets.linkx import (
    DEEZER_EUROPE,
    GENIUS,
    OEIS,
    POKEC,
    SNAP_PATENTS,
    WIKI,
    YELP_CHI,
)
from unalike.datasets.ogb import ARXIV_YEAR, OGBN_ARXIV, OGBN_PRODUCTS
from unalike.datasets.planetoid import PLANETOID
from unalike.datasets.stored import StoredSource
from unalike.datasets.twins import TWINS
from unalike.datasets.twins.twin import Twin
from unalike.datasets.twitch import TWITCH_EXPLICIT, TWITCH_GAMERS
from unalike.errors import UserError, did_you_mean
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import data_root

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
        *GEOM_GCN,
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


def find(name: str, data: Path | None = None) -> GraphSource:
    """The graph source of a name: a dataset, a file in the data root, or a folder."""
    sources: dict[str, StoredSource] = {**DATASETS, **TWINS}
    if name in sources:
        return sources[name].with_root(data)
    if (Path(name) / "graph.json").is_file() or "/" in name:
        return open_graph(Path(name))
    discovered = dict(discover(data_root(data)))
    if name in discovered:
        return discovered[name].with_root(data)
    hint = did_you_mean(name, (*sources, *discovered))
    folder = f" {name} is a folder without graph.json." if Path(name).is_dir() else ""
    raise UserError(
        f"No dataset '{name}'.{hint}{folder} "
        "`unalike list datasets` and `unalike list twins` name them all, and "
        "`unalike import` makes a folder of your own graph."
    )


IN_MEMORY = "graph in memory"
"""The name of a graph that is not stored."""
NUM_SPLITS = 5
"""Random splits of a graph in memory, as many as an import makes."""


@dataclass(frozen=True, eq=False)
class GraphInMemory:
    """A graph that is not stored, with random splits of its labelled nodes."""

    graph: Graph = field(repr=False)
    name: str = IN_MEMORY
    metric: Metric = ACCURACY

    def load(self) -> Graph:
        return self.graph

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        return self.graph

    def splits(self) -> list[Split]:
        labels = self.graph.labels
        return random_splits(labels, count=NUM_SPLITS) if (labels >= 0).any() else []

    def remarks(self) -> list[str]:
        unscaled = differ_in_scale(self.graph.features)
        return [f"{UNSCALED}; {SCALE_FIRST}"] if unscaled else []


def as_source(graph: GraphSource | Graph | str | Path) -> GraphSource:
    """The source of a graph, of the folder of a stored one, or of a name."""
    if isinstance(graph, Graph):
        return GraphInMemory(graph, metric=default_metric(graph))
    if isinstance(graph, Path):
        return open_graph(graph)
    return find(graph) if isinstance(graph, str) else graph


def unique_labels(sources: Mapping[str, GraphSource]) -> dict[str, str]:
    """The name of each source, or the words it was found by if names are the same."""
    counts = Counter(source.name for source in sources.values())
    return {
        words: source.name if counts[source.name] == 1 else words
        for words, source in sources.items()
    }


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Datasets of files in a data root that are not declared, by file name."""
    for module in (facebook100, heterophilous):
        for name, dataset in module.discover(root):
            if name not in DATASETS:
                yield name, dataset


def load(name: str, data: Path | None = None) -> Graph:
    """Load the graph of a dataset, a twin or a stored graph by name."""
    return find(name, data).load()


COUNT_KEYS = ("num_nodes", "num_edges", "num_features", "num_classes")


def list_datasets(data: Path | None = None) -> Iterator[Dataset]:
    """All declared datasets, and those discovered in the data root."""
    for dataset in (*DATASETS.values(), *dict(discover(data_root(data))).values()):
        yield dataset.with_root(data)


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Metadata of a dataset; counts are of its files rather than published ones."""
    stored, published = dataset.cached(), asdict(dataset.published)
    exact = asdict(dataset.counts) if dataset.counts else {}
    known = published | exact | (stored.metadata if stored else {})
    raw = raw_files_status(dataset)
    return {
        "name": dataset.name,
        **{key: known[key] for key in COUNT_KEYS},
        "edge_homophily": published["edge_homophily"],
        "class_homophily": published["class_homophily"],
        "metric": dataset.metric.name,
        "directed": dataset.directed,
        "label_meaning": dataset.label_meaning,
        "licence": dataset.licence,
        "raw": raw,
        **stored_location(stored),
        "minor": dataset.list_only_if_present and raw == "none" and stored is None,
        "about": dataset.about,
        "citation": dataset.citation,
        "published": published,
    }


def describe_twin(twin: Twin) -> dict[str, Any]:
    """Metadata of a twin, which need not be generated."""
    return {
        "name": twin.name,
        "num_nodes": twin.num_nodes,
        "num_edges": twin.num_edges,
        "num_features": twin.features.width,
        "num_classes": twin.num_classes,
        "edge_homophily": twin.edge_homophily,
        "monophily": twin.monophily,
        "metric": twin.metric.name,
        "directed": twin.directed,
        **stored_location(twin.cached()),
        "basis": twin.basis,
    }


def stored_location(stored: StoredGraph | None) -> dict[str, Any]:
    """Whether a graph is stored, and its folder."""
    return {
        "stored": stored is not None,
        "folder": str(stored.folder) if stored else None,
    }


def raw_files_status(dataset: Dataset) -> str:
    """Whether all, some or none of the raw files are present."""
    expected = {file.path for file in dataset.files}
    present = set(dataset.present_files())
    if expected and expected <= present:
        return "all"
    return "some" if present else "none"
