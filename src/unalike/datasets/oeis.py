"""oeis: integer sequences that refer to each other; when was each posted?"""

from pathlib import Path

from unalike.datasets.dataset import Dataset, Published
from unalike.errors import UserError
from unalike.graph import Graph


def read(root: Path) -> Graph:
    """There is nothing to read."""
    raise UserError("oeis was never released; only the paper's statistics are known.")


OEIS = Dataset(
    name="oeis",
    about="References between integer sequences. Never released: statistics only.",
    label_meaning="time of posting, in five quantiles",
    read=read,
    directed=True,
    licence="not released",
    citation="Lim et al. 2021, https://arxiv.org/abs/2110.14446",
    published=Published(
        num_nodes=226_282,
        num_edges=761_687,
        num_classes=5,
        edge_homophily=0.50,
        class_homophily=0.532,
    ),
)
