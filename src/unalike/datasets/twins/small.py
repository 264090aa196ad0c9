"""Twins of small datasets, with the class sizes and tables of the originals."""

from __future__ import annotations

from unalike.datasets.twins.features import Gaussian
from unalike.datasets.twins.model import Twin
from unalike.datasets.twins.society import Tail

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
        leaving=Tail(6.0, 0.7),
        arriving=Tail(3.5),
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
        leaving=Tail(6.0, 0.7),
        arriving=Tail(3.5),
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
        leaving=Tail(4.0, 0.7),
        arriving=Tail(3.0),
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
        leaving=Tail(3.5, 0.7),
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
        leaving=Tail(3.5, 0.7),
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
        leaving=Tail(3.0, 0.7),
        monophily=0.05,
    ),
)
