"""facebook100: friendships in a hundred schools; who is of which sex?"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.datasets.columns import as_labels
from unalike.datasets.dataset import Counts, Dataset, Published
from unalike.datasets.reading import blaming, read_mat
from unalike.datasets.remote import Remote, authors, github
from unalike.datasets.schools import SCHOOLS
from unalike.datasets.splits import by_name
from unalike.graph import Graph

GENDER = 1
"""Of the columns status, gender, major, minor, house, year and high school."""


def read(root: Path, file: Remote) -> Graph:
    """One school: an indicator for every value of every column, missing ones too."""
    path = file.at(root)
    adjacency, columns = read_mat(path, "A", "local_info")
    with blaming(path):
        friends = scipy.sparse.csr_array(adjacency)
        return Graph.build(
            Adjacency.from_scipy(friends, weighted=False).symmetric(),
            features=indicators(np.delete(columns, GENDER, axis=1)),
            labels=genders(columns[:, GENDER]),
            num_classes=2,
        )


def genders(column: np.ndarray) -> Int[Tensor, " nodes"]:
    """Classes 0 and 1 from the codes 1 and 2; whatever else is told is unknown."""
    return as_labels(np.where(np.isin(column, (1, 2)), column, 0).astype(int) - 1)


def indicators(columns: np.ndarray) -> Adjacency:
    """One-hot encodings of integer columns side by side, values in ascending order."""
    codes, width = [], 0
    for column in columns.T:
        values, code = np.unique(column, return_inverse=True)
        codes.append(code + width)
        width += len(values)
    nodes, kinds = columns.shape
    return Adjacency(
        torch.arange(nodes + 1) * kinds,
        torch.from_numpy(np.stack(codes, 1).ravel().astype(np.int32)),
        width,
    )


def school(called: str) -> Dataset:
    """The dataset of one school."""
    spaced, joined = called.replace("_", " "), called.replace("_", "")
    by_authors = (
        () if called not in AUTHORS else (authors(f"facebook100/{spaced}.mat"),)
    )
    file = Remote(
        f"facebook100/{joined}.mat",
        mirrors=(
            *by_authors,
            github(
                "sisaman/pyg-datasets", f"datasets/facebook100/{joined}.mat", "main"
            ),
        ),
        also=(f"facebook100/{spaced}.mat", f"facebook100/{called}.mat"),
    )
    name = called.replace("_", "-").lower()
    return replace(
        of_file(file, name),
        split=by_name(name),
        counts=COUNTS.get(called),
        published=PUBLISHED.get(called, Published()),
    )


def of_file(file: Remote, name: str) -> Dataset:
    """The dataset in one .mat file of the collection's format."""
    return Dataset(
        name=name,
        about="Facebook friendships among the people of a school in September 2005.",
        label_meaning="gender (unknown for some)",
        files=(file,),
        read=partial(read, file=file),
        directed=False,
        licence="none known",
        citation="Traud, Mucha and Porter 2012, https://arxiv.org/abs/1102.2166",
        minor=True,
    )


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Every other .mat file in the folder, by its own name."""
    files = [file for dataset in (PENN94, *OTHER_SCHOOLS) for file in dataset.files]
    known = {place for file in files for place in (file.path, *file.also)}
    for path in sorted((root / "facebook100").glob("*.mat")):
        if str(path.relative_to(root)) in known:
            continue
        name = path.stem.replace(" ", "-").replace("_", "-").lower()
        yield name, of_file(Remote(f"facebook100/{path.name}"), name)


AUTHORS = ("Penn94", "Amherst41", "Cornell5", "Johns_Hopkins55", "Reed98")
"""The schools in the repository of the paper's authors."""

COUNTS = {
    "Penn94": Counts(41_554, 1_362_229, 4_814, 2),
    "Amherst41": Counts(2_235, 90_954, 1_193, 2),
    "Caltech36": Counts(769, 16_656, 599, 2),
    "Cornell5": Counts(18_660, 790_777, 4_735, 2),
    "Johns_Hopkins55": Counts(5_180, 186_586, 2_406, 2),
    "MIT8": Counts(6_440, 251_252, 2_840, 2),
    "Reed98": Counts(962, 18_812, 745, 2),
    "Rice31": Counts(4_087, 184_828, 1_742, 2),
    "Simmons81": Counts(1_518, 32_988, 875, 2),
    "Wisconsin87": Counts(23_842, 835_952, 3_307, 2),
}

PUBLISHED = {
    "Penn94": Published(
        num_nodes=41_554,
        num_edges=1_362_229,
        num_features=5,
        num_classes=2,
        edge_homophily=0.470,
        class_homophily=0.046,
        one_hop=0.483,
        two_hop=0.474,
    ),
    "Amherst41": Published(
        edge_homophily=0.5306, class_homophily=0.0598, one_hop=0.4666
    ),
    "Cornell5": Published(
        edge_homophily=0.5464, class_homophily=0.0907, one_hop=0.4802
    ),
    "Johns_Hopkins55": Published(
        edge_homophily=0.5488, class_homophily=0.1064, one_hop=0.4959
    ),
    "Reed98": Published(edge_homophily=0.5216, class_homophily=0.0219, one_hop=0.4539),
    "Wisconsin87": Published(edge_homophily=0.5296, class_homophily=0.0467),
}

PENN94 = replace(school("Penn94"), minor=False)
OTHER_SCHOOLS = tuple(school(called) for called in SCHOOLS)
