"""Twins of the paper's own datasets: what is known of each, and what is assumed.

Nodes, edges, classes and features are counted as in the paper. The informativeness of
the features is set so that they alone give its score of an MLP, the monophily so that
the edges alone give about its score of LINK.
"""

from __future__ import annotations

from unalike.datasets.twins.features import Gaussian, OneHot
from unalike.datasets.twins.model import Numbers, Twin
from unalike.datasets.twins.society import Tail
from unalike.metrics import ROC_AUC


def shared_out(sources: Numbers, rows: tuple[Numbers, ...]) -> tuple[Numbers, ...]:
    """The class table of edges that leave the classes in given shares, by rows."""
    return tuple(
        tuple(source * entry for entry in row)
        for source, row in zip(sources, rows, strict=True)
    )


LARGE = (
    Twin(
        name="penn94-twin",
        basis="class table from the printed .470 over all edges and ĥ of .046, even "
        "classes; unlabelled ends as in other Facebook graphs; attributes as many as "
        "Cornell5 has, in sum those of Penn94; tail of the other Facebook graphs",
        num_nodes=41_554,
        num_edges=1_362_229,
        sizes=(19_408, 19_407, 2_739),
        edges=((0.2335, 0.2130, 0.026), (0.2130, 0.2335, 0.026), (0.026, 0.026, 0.003)),
        unlabelled=True,
        features=OneHot((7, 105, 105, 134, 45, 4_418), 0.472, telling=1),
        leaving=Tail(4.7, 0.9),
        monophily=0.035,
    ),
    Twin(
        name="pokec-twin",
        basis="class table from the printed .445 and ĥ of 0, even classes; its 163 "
        "unlabelled nodes are left labelled; tails assumed",
        num_nodes=1_632_803,
        num_edges=30_622_564,
        sizes=(1, 1),
        edges=((0.445, 0.555), (0.555, 0.445)),
        features=Gaussian(65, 0.247),
        leaving=Tail(3.0),
        arriving=Tail(3.0),
        monophily=0.06,
    ),
    Twin(
        name="arxiv-year-twin",
        basis="class sizes, class table and tails measured on the original",
        num_nodes=169_343,
        num_edges=1_166_243,
        sizes=(31_971, 21_189, 37_781, 29_799, 48_603),
        edges=(
            (71_669, 1_719, 342, 107, 84),
            (50_836, 28_002, 2_251, 155, 97),
            (54_919, 95_586, 69_515, 2_702, 594),
            (27_681, 69_988, 117_875, 29_119, 3_273),
            (41_363, 106_555, 208_403, 123_005, 60_403),
        ),
        features=Gaussian(128, 0.29),
        leaving=Tail(4.7, 0.7),
        arriving=Tail(2.4),
        monophily=0.02,
        symmetrised=False,
    ),
    Twin(
        name="snap-patents-twin",
        basis="class table constructed: lower triangular, no edge leaves the first "
        "fifth (the source lists what patents of 1975 and later cite), the printed "
        ".073 and ĥ of .100; even classes; tails assumed",
        num_nodes=2_923_922,
        num_edges=13_975_788,
        sizes=(1, 1, 1, 1, 1),
        edges=shared_out(
            (0, 0.05, 0.15, 0.30, 0.50),
            (
                (0, 0, 0, 0, 0),
                (0.4, 0.6, 0, 0, 0),
                (0.45, 0.45, 0.10, 0, 0),
                (0.30, 0.35, 0.30, 0.05, 0),
                (0.18, 0.26, 0.30, 0.234, 0.026),
            ),
        ),
        features=Gaussian(269, 0.237),
        leaving=Tail(4.0, 0.7),
        arriving=Tail(3.5, 0.8),
        monophily=0.2,
        symmetrised=False,
    ),
    Twin(
        name="genius-twin",
        basis="class table constructed from the printed .618 and ĥ of .080, class 1 "
        "as common among its own targets as among the nodes; 81 to 19 classes; tails "
        "assumed",
        num_nodes=421_961,
        num_edges=984_979,
        sizes=(0.81, 0.19),
        edges=shared_out((0.6114, 0.3886), ((0.89, 0.11), (0.81, 0.19))),
        features=Gaussian(12, 0.568),
        leaving=Tail(2.5),
        arriving=Tail(2.3),
        monophily=0.09,
        metric=ROC_AUC,
    ),
    Twin(
        name="twitch-gamers-twin",
        basis="class table from the printed .545, with which the ĥ of .090 agrees for "
        "even classes; tail assumed",
        num_nodes=168_114,
        num_edges=6_797_557,
        sizes=(1, 1),
        edges=((0.545, 0.455), (0.455, 0.545)),
        features=Gaussian(7, 0.218),
        leaving=Tail(2.8),
        monophily=0.001,
    ),
    Twin(
        name="wiki-twin",
        basis="class table constructed from the printed .389 and ĥ of .107: pages "
        "link, and are linked to, the more the more they are read; even classes; "
        "tails assumed",
        num_nodes=1_925_342,
        num_edges=303_434_860,
        sizes=(1, 1, 1, 1, 1),
        edges=shared_out(
            (0.08, 0.09, 0.11, 0.20, 0.52),
            (
                (0.08, 0.10, 0.14, 0.228, 0.452),
                (0.08, 0.10, 0.14, 0.228, 0.452),
                (0.08, 0.10, 0.14, 0.228, 0.452),
                (0.08, 0.10, 0.14, 0.228, 0.452),
                (0.05, 0.07, 0.10, 0.18, 0.60),
            ),
        ),
        features=Gaussian(600, 0.346, dtype="float16"),
        leaving=Tail(3.0),
        arriving=Tail(2.3),
        monophily=0.001,
    ),
)
