"""Penn94 and the other schools of Facebook100."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.datasets.base import Counts, Dataset, Published
from unalike.datasets.matlab import read_mat
from unalike.datasets.readers import (
    label_tensor,
    one_hot_features,
    read_errors,
)
from unalike.datasets.remote import RemoteFile, github_url, linkx_url
from unalike.datasets.splits import paper_or_random

SCHOOLS = tuple(
    """
    Harvard1 Columbia2 Stanford3 Yale4 Cornell5 Dartmouth6 UPenn7 MIT8 NYU9 BU10 Brown11
    Princeton12 Berkeley13 Duke14 Georgetown15 UVA16 BC17 Tufts18 Northeastern19
    UIllinois20 UF21 Wellesley22 Michigan23 MSU24 Northwestern25 UCLA26 Emory27 UNC28
    Tulane29 UChicago30 Rice31 WashU32 UC33 UCSD34 USC35 Caltech36 UCSB37 Rochester38
    Bucknell39 Williams40 Amherst41 Swarthmore42 Wesleyan43 Oberlin44 Middlebury45
    Hamilton46 Bowdoin47 Vanderbilt48 Carnegie49 UGA50 USF51 UCF52 FSU53 GWU54
    Johns_Hopkins55 Syracuse56 Notre_Dame57 Maryland58 Maine59 Smith60 UC61 Villanova62
    Virginia63 UC64 Cal65 Mississippi66 Mich67 UCSC68 Indiana69 Vermont70 Auburn71
    USFCA72 Wake73 Santa74 American75 Haverford76 William77 MU78 JMU79 Texas80 Simmons81
    Bingham82 Temple83 Texas84 Vassar85 Pepperdine86 Wisconsin87 Colgate88 Rutgers89
    Howard90 UConn91 UMass92 Baylor93 Tennessee95 Lehigh96 Oklahoma97 Reed98
    Brandeis99 Trinity100
    """.replace("\n", " ").split()
)
"""The other 99 schools in the order of their numbers; an underscore is a space."""

GENDER = 1
"""Index of gender among status, gender, major, minor, house, year, high school."""


def read(root: Path, file: RemoteFile) -> Graph:
    """Read one school; features are one-hot values of every column, 0 included."""
    path = file.require(root)
    adjacency, columns = read_mat(path, "A", "local_info")
    with read_errors(path):
        friends = scipy.sparse.csr_array(adjacency)
        return Graph.build(
            Adjacency.from_scipy(friends, weighted=False).to_undirected(),
            features=one_hot(np.delete(columns, GENDER, axis=1)),
            labels=genders(columns[:, GENDER]),
            num_classes=2,
        )


def genders(column: np.ndarray) -> Int[Tensor, " nodes"]:
    """Labels 0 and 1 from the codes 1 and 2; any other code is unlabelled."""
    return label_tensor(np.where(np.isin(column, (1, 2)), column, 0).astype(int) - 1)


def one_hot(columns: np.ndarray) -> Adjacency:
    """One-hot encoding of integer columns, with categories in ascending order."""
    unique = [np.unique(column, return_inverse=True) for column in columns.T]
    codes = np.stack([code for _, code in unique], axis=1)
    return one_hot_features(codes, [len(categories) for categories, _ in unique])


def school_dataset(school: str) -> Dataset:
    """The dataset of one school."""
    spaced, joined = school.replace("_", " "), school.replace("_", "")
    path = f"facebook100/{joined}.mat"
    mirrors = [github_url("sisaman/pyg-datasets", f"datasets/{path}", "main")]
    if school in LINKX_SCHOOLS:
        mirrors.insert(0, linkx_url(f"facebook100/{spaced}.mat"))
    file = RemoteFile(
        path,
        mirrors=tuple(mirrors),
        other_paths=(f"facebook100/{spaced}.mat", f"facebook100/{school}.mat"),
    )
    name = school.replace("_", "-").lower()
    return replace(
        dataset_from_file(file, name),
        split=paper_or_random(name),
        counts=COUNTS.get(school),
        published=PUBLISHED.get(school, Published()),
    )


def dataset_from_file(file: RemoteFile, name: str) -> Dataset:
    """The dataset in one .mat file of Facebook100."""
    return Dataset(
        name=name,
        about="Facebook friendships among the people of a school in September 2005.",
        label_meaning="gender (unknown for some)",
        files=(file,),
        read=partial(read, file=file),
        directed=False,
        citation="Traud, Mucha and Porter 2012, https://arxiv.org/abs/1102.2166",
        list_only_if_present=True,
    )


def discover(root: Path) -> Iterator[tuple[str, Dataset]]:
    """Datasets of .mat files in the data root that are not declared, by file name."""
    files = [file for dataset in (PENN94, *OTHER_SCHOOLS) for file in dataset.files]
    known = {path for file in files for path in (file.path, *file.other_paths)}
    for path in sorted((root / "facebook100").glob("*.mat")):
        if str(path.relative_to(root)) in known:
            continue
        name = path.stem.replace(" ", "-").replace("_", "-").lower()
        yield name, dataset_from_file(RemoteFile(f"facebook100/{path.name}"), name)


LINKX_SCHOOLS = ("Penn94", "Amherst41", "Cornell5", "Johns_Hopkins55", "Reed98")
"""Schools in the repository of the LINKX authors."""

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

PENN94 = replace(school_dataset("Penn94"), list_only_if_present=False)
OTHER_SCHOOLS = tuple(school_dataset(school) for school in SCHOOLS)
