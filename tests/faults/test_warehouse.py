"""Odd tables in every engine: the graph that an import stores, or one line."""

import math
import random
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from engines import ENGINES, as_pandas, random_tables

from unalike import (
    ImportOptions,
    UserError,
    import_graph,
    measure,
    open_graph,
    warehouse,
)

NODES, EDGES = 8, 14
LOCAL = sorted(ENGINES.keys() - {"spark"})
MEASURES = ("edge_homophily", "node_homophily")
ODD = [None, -1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 1e308, math.inf, math.nan]
ODD += ["", " 3", "3", "3.0", "\u00a03", "\u2003a", "a ", "\x00", " Train ", 0.5]
IDS = {
    "int64": range(NODES),
    "uint64": range(NODES),
    "double": map(float, range(NODES)),
    "string": [f"n{number}" for number in range(NODES)],
    "digits": map(str, range(NODES)),
}
IDS = {name: list(ids) for name, ids in IDS.items()}


def column(values: list, kind: str) -> pa.Array:
    """The values as one type of Arrow, as text where they have none in common."""
    try:
        return pa.array(values, pa.uint64() if kind == "uint64" else None)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if one is None else str(one) for one in values])


def odd_tables(rng: random.Random) -> tuple[pa.Table, pa.Table]:
    """A table of edges and one of nodes, with up to two odd values."""
    kind = rng.choice(list(IDS))
    ids = IDS[kind]
    table = {
        "source": rng.choices(ids, k=EDGES),
        "target": rng.choices(ids, k=EDGES),
        "id": [*ids],
        "kind": rng.choices(rng.choice([["a", "b", "c"], [97, 98]]), k=NODES),
        "part": rng.choices(["train", "valid", "test", ""], k=NODES),
    }
    for _ in range(rng.randrange(3)):
        name = rng.choice(list(table))
        table[name][rng.randrange(NODES)] = rng.choice(ODD)
    types = dict.fromkeys(("source", "target", "id"), kind)
    columns = {n: column(values, types.get(n, "")) for n, values in table.items()}
    edges = {name: columns.pop(name) for name in ("source", "target")}
    return pa.table(edges), pa.table(columns)


def measured(tables, out, options) -> dict[str, float]:
    """Measures of the graph that an import stores."""
    options = ImportOptions(label="kind", split="part", **options)
    import_graph(*tables, out=out, options=options)
    return measure(open_graph(out).load(), only=MEASURES)


def frames(engine, tables):
    with warnings.catch_warnings(action="ignore"):
        return [ENGINES[engine](table) for table in tables]


def test_an_engine_measures_what_an_import_stores_or_refuses(tmp_path, some):
    for rng in some:
        tables, engine = odd_tables(rng), rng.choice(LOCAL)
        options = {"directed": rng.random() < 0.5}
        options["unknown"] = rng.choice(["refuse", "drop"])
        try:
            expected = measured(tables, tmp_path / "graph", options)
        except UserError:
            expected = None
        shutil.rmtree(tmp_path / "graph", ignore_errors=True)
        with suppress(UserError):
            found = warehouse.measure(
                *frames(engine, tables),
                label="kind",
                split="part",
                only=MEASURES,
                **options,
            )
            assert expected is not None, (engine, found)
            for name in MEASURES:
                assert found[name] == pytest.approx(expected[name], nan_ok=True)


FOLDS = [None, math.nan, math.inf, 0.5, -1, 2**63, 1e308, "x", "", True]


def test_odd_folds_are_refused_or_hide_the_label_of_their_own_row(some):
    edges, nodes = random_tables(5, nodes=20, edges=80)
    for rng in some:
        folds = [number % 3 for number in range(20)]
        for row in rng.sample(range(20), rng.choice([1, 20])):
            folds[row] = rng.choice(FOLDS)
        table = nodes.append_column("fold", column(folds, ""))
        row, engine = rng.randrange(20), rng.choice(LOCAL)
        labels, rows = nodes["kind"].to_pylist(), []
        with suppress(UserError):
            for label in ("class 0", "class 1"):
                labels[row] = label
                changed = table.set_column(1, "kind", [labels])
                found = warehouse.views(
                    *frames(engine, (edges, changed)), label="kind", fold="fold"
                )
                rows.append(as_pandas(found, "node").iloc[row])
            assert np.allclose(rows[0], rows[1], rtol=0, atol=1e-12), (engine, folds)


@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize(
    "options",
    [
        {"folds": 0},
        {"folds": -1},
        {"folds": 2**70},
        {"hops": 0},
        {"hops": 2**70},
    ],
    ids=str,
)
def test_odd_arguments_are_an_error_of_one_line(engine, options):
    tables = frames(engine, random_tables(5, nodes=20, edges=80))
    with pytest.raises(UserError) as error:
        warehouse.views(*tables, **{"label": "kind"} | options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [-1, 0, 10**30])
@pytest.mark.parametrize("engine", LOCAL)
def test_odd_sizes_of_a_sample_are_an_error_of_one_line(tmp_path, engine, size):
    tables = frames(engine, random_tables(5, nodes=20, edges=80))
    with pytest.raises(UserError) as error:
        warehouse.sample(*tables, size, out=tmp_path / "sample", label="kind")
    assert "\n" not in str(error.value)
