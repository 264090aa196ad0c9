"""wiki: links between Wikipedia articles; how many people view each?"""

from pathlib import Path

from unalike.adjacency import Adjacency
from unalike.datasets.columns import as_labels
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.reading import blaming, read_tensor
from unalike.datasets.remote import Remote, drive
from unalike.errors import UserError
from unalike.graph import Graph


def _file(name: str, identity: str) -> Remote:
    return Remote(f"wiki/{name}", mirrors=(drive(identity),), also=(name,))


FEATURES = _file("wiki_features2M.pt", "1ySNspxbK-snNoAZM7oxiWGvOnTRdSyEK")
EDGES = _file("wiki_edges2M.pt", "14X7FlkjrlUgmnsYtPwdh-gGuFla4yb5u")
VIEWS = _file("wiki_views2M.pt", "1p5DlVHrnFgYm3VsNIzahSsvCD424AyvP")


def read(root: Path) -> Graph:
    """The graph over mapped features: only what is looked at comes into memory."""
    path = EDGES.at(root)
    edges = read_tensor(path)
    labels = as_labels(read_tensor(VIEWS.at(root)))
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise UserError(f"{path} holds {tuple(edges.shape)} numbers instead of pairs.")
    with blaming(path):
        rows = Adjacency.from_edges(
            edges[:, 0], edges[:, 1], shape=(len(labels), len(labels))
        )
    return Graph.build(
        rows,
        features=read_tensor(FEATURES.at(root)),
        labels=labels,
        num_classes=5,
        directed=True,
    )


WIKI = Dataset(
    name="wiki",
    about="Links between articles of the English Wikipedia in spring 2021.",
    label_meaning="page views in 60 days, in five quantiles",
    files=(FEATURES, EDGES, VIEWS),
    read=read,
    directed=True,
    licence="CC BY-SA 3.0 and GFDL",
    citation="Lim et al. 2021, https://arxiv.org/abs/2110.14446",
    counts=Counts(1_925_342, 303_434_860, 600, 5),
    published=Published(
        num_nodes=1_925_342,
        num_edges=303_434_860,
        num_features=600,
        num_classes=5,
        edge_homophily=0.389,
        class_homophily=0.107,
    ),
)
