"""genius: who follows whom on a lyrics site; which accounts are marked?"""

from functools import partial

from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.edge_mat import read_two_classes
from unalike.datasets.remote import Remote, authors
from unalike.datasets.splits import shipped
from unalike.metrics import ROC_AUC

FILE = Remote("genius/genius.mat", (authors("genius.mat"),), also=("genius.mat",))
SPLITS = Remote(
    "splits/genius-splits.npy", mirrors=(authors("splits/genius-splits.npy"),)
)


GENIUS = Dataset(
    name="genius",
    about="Who follows whom on genius.com, a site that annotates song lyrics.",
    label_meaning="the account is marked as gone",
    files=(FILE, SPLITS),
    read=partial(read_two_classes, file=FILE),
    split=shipped(SPLITS),
    metric=ROC_AUC,
    directed=True,
    licence="none",
    citation="Lim and Benson 2021, https://arxiv.org/abs/2006.08108",
    counts=Counts(421_961, 984_979, 12, 2),
    published=Published(
        num_nodes=421_961,
        num_edges=984_979,
        num_features=12,
        num_classes=2,
        edge_homophily=0.618,
        class_homophily=0.080,
        one_hop=0.508,
        two_hop=0.749,
    ),
)
