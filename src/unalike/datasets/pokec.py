"""pokec: who follows whom in a Slovak social network; who is of which sex?"""

from functools import partial

from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.edge_mat import read_two_classes
from unalike.datasets.remote import Remote, drive
from unalike.datasets.splits import chained

FILE = Remote(
    "pokec/pokec.mat",
    mirrors=(drive("1dNs5E7BrWJbgcHeQ_zuy5Ozp2tRCWG0y"),),
    also=("pokec.mat",),
)


POKEC = Dataset(
    name="pokec",
    about="Who follows whom in the Slovak social network Pokec.",
    label_meaning="gender (unknown for 163)",
    files=(FILE,),
    read=partial(read_two_classes, file=FILE),
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
