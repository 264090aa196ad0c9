"""pokec: who follows whom in a Slovak social network; who is of which sex?"""

from pathlib import Path

from unalike.datasets.columns import as_dense, as_labels
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.edge_mat import read_edge_mat
from unalike.datasets.remote import Remote, drive
from unalike.datasets.splits import chained
from unalike.graph import Graph

FILE = Remote(
    "pokec/pokec.mat",
    mirrors=(drive("1dNs5E7BrWJbgcHeQ_zuy5Ozp2tRCWG0y"),),
    also=("pokec.mat",),
)


def read(root: Path) -> Graph:
    """The graph as the authors released it; they did not say how features were made."""
    edges, features, labels = read_edge_mat(root, FILE, "label")
    return Graph.build(
        edges,
        features=as_dense(features),
        labels=as_labels(labels),
        num_classes=2,
        directed=True,
    )


POKEC = Dataset(
    name="pokec",
    about="Who follows whom in the Slovak social network Pokec.",
    label_meaning="gender (unknown for 163)",
    files=(FILE,),
    read=read,
    split=chained("pokec"),
    directed=True,
    licence="none",
    citation="Takac and Zabovsky 2012, https://snap.stanford.edu/data/soc-Pokec.html",
    counts=Counts(1_632_803, 30_622_564, 65, 2),
    published=Published(
        num_nodes=1_632_803,
        num_edges=30_622_564,
        num_features=65,
        num_classes=2,
        edge_homophily=0.445,
        class_homophily=0.000,
        one_hop=0.428,
        two_hop=0.611,
    ),
)
