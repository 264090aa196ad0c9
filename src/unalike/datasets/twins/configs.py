"""Configurations of all twins."""

from __future__ import annotations

from unalike.data.metrics import ROC_AUC
from unalike.datasets.twins.features import Gaussian, OneHot
from unalike.datasets.twins.generator import DegreeDistribution
from unalike.datasets.twins.twin import Numbers, Twin

# Nodes, edges, classes and features are counted as in the LINKX paper. The
# informativeness is set so that an MLP gets about its published score, the monophily so
# that LINK does.


def scale_rows(sources: Numbers, rows: tuple[Numbers, ...]) -> tuple[Numbers, ...]:
    """The class table with each row multiplied by the edges of its source class."""
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
        leaving=DegreeDistribution(4.7, 0.9),
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
        leaving=DegreeDistribution(3.0),
        arriving=DegreeDistribution(3.0),
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
        leaving=DegreeDistribution(4.7, 0.7),
        arriving=DegreeDistribution(2.4),
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
        edges=scale_rows(
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
        leaving=DegreeDistribution(4.0, 0.7),
        arriving=DegreeDistribution(3.5, 0.8),
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
        edges=scale_rows((0.6114, 0.3886), ((0.89, 0.11), (0.81, 0.19))),
        features=Gaussian(12, 0.568),
        leaving=DegreeDistribution(2.5),
        arriving=DegreeDistribution(2.3),
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
        leaving=DegreeDistribution(2.8),
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
        edges=scale_rows(
            (0.08, 0.09, 0.11, 0.20, 0.52),
            (
                *4 * ((0.08, 0.10, 0.14, 0.228, 0.452),),
                (0.05, 0.07, 0.10, 0.18, 0.60),
            ),
        ),
        features=Gaussian(600, 0.346, dtype="float16"),
        leaving=DegreeDistribution(3.0),
        arriving=DegreeDistribution(2.3),
        monophily=0.001,
    ),
)

MEASURED = "class sizes and class table counted in the original; tails near its own"

SMALL = (
    Twin(
        name="chameleon-twin",
        basis=MEASURED,
        num_nodes=2_277,
        num_edges=36_051,
        sizes=(456, 460, 453, 521, 387),
        edges=(
            (1_070, 651, 712, 453, 1_049),
            (3_859, 1_184, 1_050, 779, 1_220),
            (880, 1_061, 1_861, 1_655, 1_803),
            (1_013, 975, 2_012, 2_042, 2_742),
            (570, 854, 2_167, 2_112, 2_277),
        ),
        features=Gaussian(2_325, 0.474),
        leaving=DegreeDistribution(6.0, 0.7),
        arriving=DegreeDistribution(3.5),
        monophily=0.04,
    ),
    Twin(
        name="squirrel-twin",
        basis=MEASURED,
        num_nodes=5_201,
        num_edges=216_933,
        sizes=(1_042, 1_040, 1_039, 1_040, 1_040),
        edges=(
            (4_885, 4_700, 4_043, 4_752, 5_577),
            (5_552, 6_071, 6_314, 6_937, 7_624),
            (5_207, 6_934, 8_552, 9_077, 9_226),
            (5_891, 8_471, 11_117, 12_066, 12_073),
            (9_996, 12_949, 14_982, 17_039, 16_898),
        ),
        features=Gaussian(2_089, 0.191),
        leaving=DegreeDistribution(6.0, 0.7),
        arriving=DegreeDistribution(3.5),
        monophily=0.015,
    ),
    Twin(
        name="actor-twin",
        basis=MEASURED,
        num_nodes=7_600,
        num_edges=29_926,
        sizes=(853, 1_337, 1_630, 1_815, 1_965),
        edges=(
            (391, 576, 677, 974, 907),
            (542, 871, 1_021, 1_450, 1_331),
            (731, 1_052, 1_238, 1_777, 1_643),
            (740, 1_192, 1_336, 1_937, 1_643),
            (910, 1_265, 1_589, 2_096, 2_037),
        ),
        features=Gaussian(932, 0.293),
        leaving=DegreeDistribution(4.0, 0.7),
        arriving=DegreeDistribution(3.0),
        monophily=0.0,
    ),
    Twin(
        name="cora-twin",
        basis=MEASURED,
        num_nodes=2_708,
        num_edges=5_278,
        sizes=(351, 217, 418, 818, 426, 298, 180),
        edges=(
            (1_068, 32, 23, 161, 88, 75, 80),
            (32, 818, 62, 67, 20, 28, 2),
            (23, 62, 1_654, 53, 2, 30, 2),
            (161, 67, 53, 2_350, 137, 54, 16),
            (88, 20, 2, 137, 1_320, 19, 6),
            (75, 28, 30, 54, 19, 834, 46),
            (80, 2, 2, 16, 6, 46, 506),
        ),
        features=Gaussian(1_433, 0.841),
        leaving=DegreeDistribution(3.5, 0.7),
        monophily=0.05,
    ),
    Twin(
        name="citeseer-twin",
        basis=MEASURED,
        num_nodes=3_327,
        num_edges=4_552,
        sizes=(264, 590, 668, 701, 596, 508),
        edges=(
            (194, 111, 46, 67, 93, 21),
            (111, 904, 238, 60, 79, 28),
            (46, 238, 2_082, 180, 47, 64),
            (67, 60, 180, 1_256, 50, 34),
            (93, 79, 47, 50, 1_378, 86),
            (21, 28, 64, 34, 86, 882),
        ),
        features=Gaussian(3_703, 0.822),
        leaving=DegreeDistribution(3.5, 0.7),
        monophily=0.05,
    ),
    Twin(
        name="pubmed-twin",
        basis=MEASURED,
        num_nodes=19_717,
        num_edges=44_324,
        sizes=(4_103, 7_739, 7_875),
        edges=(
            (10_424, 1_670, 3_724),
            (1_670, 29_126, 3_365),
            (3_724, 3_365, 31_580),
        ),
        features=Gaussian(500, 0.838),
        leaving=DegreeDistribution(3.0, 0.7),
        monophily=0.05,
    ),
)
