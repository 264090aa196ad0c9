"""The six small graphs of earlier work, in the format of geom-gcn."""

from functools import partial

from unalike.datasets.dataset import Counts, Published
from unalike.datasets.geom_gcn import arrays, geom_gcn, lists, new_data
from unalike.datasets.remote import Remote, github

WEB = "Links between the web pages of a computer science department."
WIKIPEDIA = "Links between Wikipedia pages on a topic."
PAGE_KIND = "kind of page: student, project, course, staff, faculty"
TRAFFIC = "monthly traffic, in five quantiles"

FILM = new_data("film", "out1_node_feature_label.txt")


def platonov(name: str) -> Remote:
    """One of the files of Platonov et al. 2023."""
    repository = "yandex-research/heterophilous-graphs"
    mirror = github(repository, f"data/{name}.npz", "main")
    return Remote(f"heterophilous/{name}.npz", (mirror,))


CHAMELEON_NODES = platonov("chameleon_directed")
SQUIRREL_NODES = platonov("squirrel_directed")

TEXAS = geom_gcn(
    "texas",
    WEB,
    PAGE_KIND,
    counts=Counts(183, 325, 1_703, 5),
    published=Published(
        num_nodes=183,
        num_edges=309,
        num_features=1_703,
        num_classes=5,
        edge_homophily=0.11,
        class_homophily=0.001,
    ),
)
WISCONSIN = geom_gcn(
    "wisconsin",
    WEB,
    PAGE_KIND,
    counts=Counts(251, 515, 1_703, 5),
    published=Published(
        num_nodes=251,
        num_edges=499,
        num_features=1_703,
        num_classes=5,
        edge_homophily=0.21,
        class_homophily=0.094,
    ),
)
CORNELL = geom_gcn(
    "cornell",
    f"{WEB} Faulty as in the paper: Cornell's links, Texas's features and labels.",
    PAGE_KIND,
    counts=Counts(183, 298, 1_703, 5),
    published=Published(
        num_nodes=183,
        num_edges=295,
        num_features=1_703,
        num_classes=5,
        edge_homophily=0.30,
        class_homophily=0.047,
    ),
)
ACTOR = geom_gcn(
    "actor",
    "Actors that are named together on a Wikipedia page (also called film).",
    "topic of the actor's page",
    counts=Counts(7_600, 30_019, 932, 5),
    published=Published(
        num_nodes=7_600,
        num_edges=29_926,
        num_features=931,
        num_classes=5,
        edge_homophily=0.22,
        class_homophily=0.011,
    ),
    node_file=FILM,
    nodes=partial(lists, file=FILM, width=932),
    folder="film",
)
SQUIRREL = geom_gcn(
    "squirrel",
    WIKIPEDIA,
    TRAFFIC,
    counts=Counts(5_201, 217_073, 2_089, 5),
    published=Published(
        num_nodes=5_201,
        num_edges=216_933,
        num_features=2_089,
        num_classes=5,
        edge_homophily=0.22,
        class_homophily=0.025,
    ),
    node_file=SQUIRREL_NODES,
    nodes=partial(arrays, file=SQUIRREL_NODES),
)
CHAMELEON = geom_gcn(
    "chameleon",
    WIKIPEDIA,
    TRAFFIC,
    counts=Counts(2_277, 36_101, 2_325, 5),
    published=Published(
        num_nodes=2_277,
        num_edges=36_101,
        num_features=2_325,
        num_classes=5,
        edge_homophily=0.23,
        class_homophily=0.062,
    ),
    node_file=CHAMELEON_NODES,
    nodes=partial(arrays, file=CHAMELEON_NODES),
)

SMALL_SIX = (TEXAS, WISCONSIN, CORNELL, ACTOR, SQUIRREL, CHAMELEON)
