"""Odd weights, labels that are numbers, and times: what `float` reads, or one line."""

import math
import random
import shutil
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest

from unalike import ImportOptions, UserError, import_graph, open_graph

NODES = 12
GOOD = ["1", "0.5", "7", "1e5", "+2", " 3 "]
ODD = ["", "nan", "NaN", "inf", "-inf", "-1", "0", "-0.0", "1e39", "3e38", "1e-50"]
ODD += ["0x10", "1_000", "1e400", "true", "x", "\u0663", "\u00a04", "9007199254740993"]
ODD += ['"1,5"', "2020-01-01", "[1.0]", "NULL", "None", "-"]


def number(text: str) -> float | None:
    """The number of a text as Python reads it; None where there is none."""
    try:
        return float(text)
    except ValueError:
        return None


def column(rng: random.Random, length: int) -> list[str]:
    """Texts, most of them ordinary numbers."""
    texts = rng.choices(GOOD, k=length)
    for _ in range(rng.choice([0, 1, 1, 3])):
        texts[rng.randrange(length)] = rng.choice(ODD)
    return texts


@pytest.fixture
def imported(tmp_path):
    """Import an edge list and a table of nodes; None if they are refused."""

    def read(edges, nodes, **options):
        (tmp_path / "e.csv").write_text("\n".join(edges) + "\n", "utf-8")
        (tmp_path / "n.csv").write_text("\n".join(nodes) + "\n", "utf-8")
        tables = [tmp_path / "e.csv"], [tmp_path / "n.csv"]
        shutil.rmtree(tmp_path / "g", ignore_errors=True)
        with suppress(UserError):
            import_graph(*tables, out=tmp_path / "g", options=ImportOptions(**options))
            return open_graph(tmp_path / "g")
        assert not (tmp_path / "g").exists()
        return None

    return read


def test_weights_are_the_sums_of_those_that_python_reads(imported, some):
    ids = [str(node) for node in range(NODES)]
    for rng in some:
        ends = [rng.sample(ids[:3], 2) for _ in range(10)]
        texts = column(rng, len(ends))
        if rng.random() < 0.2:
            texts[:6] = ["3e38"] * 6
        rows = [f"{u},{v},{w}" for (u, v), w in zip(ends, texts, strict=True)]
        stored = imported(["u,v,w", *rows], ["id", *ids], weight="w", directed=True)
        if stored is None:
            continue
        sums = np.zeros((NODES, NODES), np.float32)
        for (u, v), text in zip(ends, texts, strict=True):
            weight = number(text)
            assert weight is not None and 0 < weight < math.inf, texts
            sums[int(u), int(v)] += np.float32(weight)
        assert np.isfinite(sums).all(), texts
        found = stored.graph.adjacency.to_scipy().toarray()
        assert np.allclose(found, sums, rtol=1e-6), texts


def test_labels_that_are_numbers_are_those_that_python_reads(imported, some):
    edges = ["u,v", *(f"{node},{(node * 5 + 1) % NODES}" for node in range(NODES))]
    for rng in some:
        texts = column(rng, NODES)
        rows = [f"{node},{text}" for node, text in enumerate(texts)]
        stored = imported(edges, ["id,y", *rows], label="y", metric="r2", splits=1)
        if stored is None:
            continue
        graph = stored.graph
        for label, text in zip(graph.labels.tolist(), texts, strict=True):
            value = number(text)
            if label >= 0:
                assert value == pytest.approx(float(graph.label_values[label])), texts
            else:
                assert not text.strip() or value is None or math.isnan(value), texts


def test_times_divide_nodes_as_python_sorts_them(imported, some):
    edges = ["u,v", *(f"{node},{(node * 5 + 1) % NODES}" for node in range(NODES))]
    for rng in some:
        texts = column(rng, NODES)
        rows = [f"{node},{'ab'[node % 2]},{t}" for node, t in enumerate(texts)]
        stored = imported(edges, ["id,y,t", *rows], label="y", split_time="t")
        if stored is None:
            continue
        (split,) = stored.splits()
        parts = [
            [number(texts[node]) for node in ids]
            for ids in (split.train, split.valid, split.test)
        ]
        known = [value for part in parts for value in part]
        assert None not in known, texts
        assert len(known) == sum(
            (value := number(text)) is not None and not math.isnan(value)
            for text in texts
        ), texts
        for before, after in pairwise(parts):
            assert not before or not after or max(before) < min(after), texts
