"""yelp-chi: reviews of Chicago's hotels and restaurants; which are fraud?"""

from pathlib import Path

from unalike.adjacency import Adjacency
from unalike.datasets.columns import as_labels, as_thin
from unalike.datasets.dataset import Dataset, Published
from unalike.datasets.reading import blaming, read_mat
from unalike.datasets.remote import Remote, drive
from unalike.datasets.splits import chained
from unalike.graph import Graph
from unalike.metrics import ROC_AUC

FILE = Remote(
    "yelp-chi/YelpChi.mat",
    mirrors=(
        drive("1fAXtTVQS4CfEk4asqrFw9EPmlUPGbGtJ"),
        "https://data.dgl.ai/dataset/FraudYelp.zip#YelpChi.mat",
    ),
    also=("YelpChi.mat",),
)


def read(root: Path) -> Graph:
    """All three kinds of relation between reviews as one."""
    path = FILE.at(root)
    adjacency, features, labels = read_mat(path, "homo", "features", "label")
    with blaming(path):
        return Graph.build(
            Adjacency.from_scipy(adjacency, weighted=False).symmetric(),
            features=as_thin(features),
            labels=as_labels(labels),
            num_classes=2,
        )


YELP_CHI = Dataset(
    name="yelp-chi",
    about="Reviews on Yelp that share a user, a product and rating, or a month.",
    label_meaning="the review is filtered as fraud",
    files=(FILE,),
    read=read,
    split=chained("yelp-chi"),
    metric=ROC_AUC,
    directed=False,
    licence="none known",
    citation="Mukherjee et al. 2013; Dou et al. 2020, https://arxiv.org/abs/2008.08692",
    published=Published(
        num_nodes=45_954, num_edges=3_846_979, num_features=32, num_classes=2
    ),
)
