"""The measures of real graphs are those that the paper prints."""

import pickle
from collections import defaultdict
from typing import ClassVar

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch

from unalike import Graph, measure
from unalike.measures import paper_conventions

GEOM_GCN = {
    "chameleon": (".23", ".062"),
    "cornell": (".30", ".047"),
    "actor": (".22", ".011"),
    "squirrel": (".22", ".025"),
    "texas": (".11", ".001"),
    "wisconsin": (".21", ".094"),
}

COMPATIBILITY = {
    "cornell": """.169 .008 .073 .629 .121 | - - - - - | .214 0 .286 .357 .143 |
        .238 .041 .107 .484 .131 | .229 .057 .143 .457 .114""",
    "texas": """.015 0 .080 .686 .219 | 0 0 1 0 0 | .017 0 .103 .672 .207 |
        .156 0 .578 .244 .022 | .358 0 .269 .373 0""",
    "wisconsin": """.333 0 0 .333 .333 | .024 .224 .580 .144 .028 |
        0 .641 .126 .126 .107 | .052 .234 .519 .052 .143 | .167 .030 .470 .167 .167""",
    "chameleon": """.272 .165 .181 .115 .267 | .477 .146 .130 .096 .151 |
        .121 .146 .256 .228 .248 | .115 .111 .229 .232 .312 |
        .071 .107 .272 .265 .285""",
    "squirrel": """.204 .196 .169 .198 .233 | .171 .187 .194 .213 .235 |
        .134 .178 .219 .233 .237 | .119 .171 .224 .243 .243 |
        .139 .180 .208 .237 .235""",
    "actor": """.111 .163 .192 .276 .257 | .104 .167 .196 .278 .255 |
        .113 .163 .192 .276 .255 | .108 .174 .195 .283 .240 |
        .115 .160 .201 .265 .258""",
    "arxiv-year": """.970 .023 .005 .001 .001 | .625 .344 .028 .002 .001 |
        .246 .428 .311 .012 .003 | .112 .282 .475 .117 .013 |
        .077 .197 .386 .228 .112""",
}


def geom_gcn(data, name):
    """One of the six older graphs, with the loops of its edge file."""
    folder = data / "geom-gcn" / {"actor": "film"}.get(name, name)
    edges = np.loadtxt(folder / "out1_graph_edges.txt", skiprows=1, dtype=np.int64)
    table = folder / "out1_node_feature_label.txt"
    if table.exists():
        lines = [line.split("\t") for line in table.read_text().splitlines()[1:]]
        labels = np.zeros(len(lines), np.int64)
        for node, _, label in lines:
            labels[int(node)] = int(label)
    else:
        arrays = np.load(data / "heterophilous" / f"{name}_directed.npz")
        labels = arrays["node_labels"].astype(np.int64)
    return Graph.from_edges(
        *torch.from_numpy(edges).T,
        num_nodes=len(labels),
        labels=torch.from_numpy(labels),
        directed=True,
    )


def arxiv(data, labels):
    """The citations of ogbn-arxiv with the given labels."""
    rows = scipy.sparse.load_npz(data / "arxiv-year" / "adj_full.npz")
    return Graph.from_scipy(scipy.sparse.csr_array(rows), labels=labels)


def arxiv_years(data):
    years = np.loadtxt(data / "arxiv-year" / "node_year.csv.gz", dtype=np.int64)
    bounds = np.quantile(years, [0.2, 0.4, 0.6, 0.8])
    return arxiv(data, np.searchsorted(bounds, years, side="right"))


class Plain(pickle.Unpickler):
    """Reads dictionaries, lists and arrays, and refuses everything else."""

    known: ClassVar = {
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,
    }

    def find_class(self, module, name):
        return self.known[module, name]


def planetoid(data, name):
    """One of three citation graphs; nodes without a row are of class 0, as in PyG."""

    def part(end):
        with (data / "planetoid" / f"ind.{name}.{end}").open("rb") as file:
            return Plain(file, encoding="latin1").load()

    known, rest, neighbours = part("ally"), part("ty"), part("graph")
    where = np.loadtxt(data / "planetoid" / f"ind.{name}.test.index", dtype=int)
    labels = np.zeros((where.max() + 1, known.shape[1]))
    labels[: len(known)], labels[where] = known, rest
    pairs = [(u, v) for u, row in neighbours.items() for v in row if u != v]
    return Graph.from_edges(
        *torch.tensor(pairs).T,
        num_nodes=len(labels),
        labels=torch.from_numpy(labels.argmax(1)),
    )


def rounded(value, printed):
    return f"{value:.{len(printed) - 1}f}".lstrip("0")


@pytest.mark.parametrize("name", GEOM_GCN)
def test_the_six_older_graphs_have_their_printed_homophily(data, name):
    found = measure(geom_gcn(data, name), conventions=paper_conventions(name))
    edge, class_ = GEOM_GCN[name]
    assert rounded(found["edge_homophily"], edge) == edge
    assert rounded(found["class_homophily"], class_) == class_


@pytest.mark.parametrize("name", COMPATIBILITY)
def test_compatibility_matrices_agree_to_three_digits(data, name):
    graph = arxiv_years(data) if name not in GEOM_GCN else geom_gcn(data, name)
    found = measure(graph, only=["compatibility"])["compatibility"]
    told = COMPATIBILITY[name].replace("-", "nan").split("|")
    expected = np.array([row.split() for row in told], float)
    np.testing.assert_allclose(found, expected, atol=5.01e-4)


def test_arxiv_year_has_its_printed_homophily(data):
    found = measure(arxiv_years(data), conventions=paper_conventions("arxiv-year"))
    assert rounded(found["edge_homophily"], ".222") == ".222"
    assert rounded(found["class_homophily"], ".272") == ".272"
    assert rounded(found["node_homophily"], ".289") == ".289"
    printed_error = found["two_hop_node_homophily_deviation"] / np.sqrt(500)
    assert found["two_hop_node_homophily"] == pytest.approx(
        0.341,
        abs=2 * np.hypot(found["two_hop_node_homophily_standard_error"], printed_error),
    )


def test_ogbn_arxiv_has_its_printed_homophily(data):
    path = data / "arxiv-year" / "node-label.csv.gz"
    graph = arxiv(data, np.loadtxt(path, dtype=np.int64))
    found = measure(graph, only=["edge_homophily", "class_homophily"])
    assert found["edge_homophily"] == pytest.approx(0.655, abs=5e-4)
    assert rounded(found["edge_homophily"], ".66") == ".66"
    assert rounded(found["class_homophily"], ".416") == ".416"


@pytest.mark.parametrize(
    ("name", "edges", "edge", "class_"),
    [
        ("cora", 5278, ".81", ".766"),
        ("citeseer", 4552, ".74", ".627"),
        ("pubmed", 44324, ".80", ".664"),
    ],
)
def test_planetoid_graphs_have_their_printed_homophily(data, name, edges, edge, class_):
    found = measure(planetoid(data, name), only=["edge_homophily", "class_homophily"])
    assert found["num_edges"] == edges
    assert rounded(found["edge_homophily"], edge) == edge
    assert rounded(found["class_homophily"], class_) == class_


@pytest.mark.parametrize(
    ("school", "all_edges", "labelled", "class_", "node"),
    [
        ("Amherst41", 0.465, 0.5306, 0.0598, 0.4666),
        ("Cornell5", 0.479, 0.5464, 0.0907, 0.4802),
        ("Reed98", 0.450, 0.5216, 0.0219, 0.4539),
    ],
)
def test_unlabelled_students_are_left_out_or_a_class_as_penn94_needs(
    data, school, all_edges, labelled, class_, node
):
    file = scipy.io.loadmat(data / "facebook100" / f"{school}.mat")
    gender = file["local_info"][:, 1].astype(np.int64) - 1
    graph = Graph.from_scipy(scipy.sparse.csr_array(file["A"] != 0), labels=gender)
    plain = measure(graph, only=["edge_homophily", "class_homophily"])
    paper = measure(graph, conventions=paper_conventions("penn94"))
    assert plain["edge_homophily"] == pytest.approx(labelled, abs=5e-5)
    assert plain["class_homophily"] == pytest.approx(class_, abs=5e-5)
    assert paper["edge_homophily"] == pytest.approx(all_edges, abs=5e-4)
    assert paper["class_homophily"] == plain["class_homophily"]
    assert paper["node_homophily"] == pytest.approx(node, abs=5e-5)
