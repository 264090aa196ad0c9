"""A split by time: train nodes come before valid nodes, and these before test nodes."""

import numpy as np
import pytest

from unalike import ImportOptions, UserError, import_graph, open_graph

NODES = 80


def imported(tmp_path, times, **options):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, NODES, (200, 2))
    edges = "\n".join(f"{u},{v}" for u, v in ends)
    rows = "\n".join(f"{i},{'xy'[i % 2]},{i}.5,{t}" for i, t in enumerate(times))
    (tmp_path / "e.csv").write_text(f"u,v\n{edges}\n")
    (tmp_path / "n.csv").write_text(f"id,kind,size,when\n{rows}\n")
    options = ImportOptions(label="kind", split_time="when", **options)
    tables = ([tmp_path / "e.csv"], [tmp_path / "n.csv"])
    import_graph(*tables, out=tmp_path / "g", options=options)
    return open_graph(tmp_path / "g")


def dates(days):
    return np.datetime64("2020-01-01") + np.asarray(days)


@pytest.mark.parametrize("times", [lambda days: days, dates])
def test_nodes_are_divided_by_their_times(tmp_path, times):
    days = np.random.default_rng(1).permutation(NODES)
    stored = imported(tmp_path, times(days))
    (split,) = stored.splits()
    assert sorted(days[split.train]) == list(range(40))
    assert sorted(days[split.valid]) == list(range(40, 60))
    assert sorted(days[split.test]) == list(range(60, 80))


def test_the_time_is_no_feature_and_train_rows_decide_the_scale(tmp_path):
    days = np.arange(NODES)[::-1]
    stored = imported(tmp_path, days)
    assert [c["name"] for c in stored.metadata["feature_columns"]] == ["size"]
    (split,) = stored.splits()
    train = stored.graph.features[split.train]
    assert train.mean() == pytest.approx(0, abs=1e-3)
    assert stored.graph.features[split.test].max() < train.min() + 0.1


def test_nodes_of_one_time_are_in_one_part(tmp_path):
    days = np.arange(NODES) // 7
    (split,) = imported(tmp_path, days).splits()
    parts = [set(days[ids]) for ids in (split.train, split.valid, split.test)]
    assert max(parts[0]) < min(parts[1])
    assert max(parts[1]) < min(parts[2])


def test_nodes_without_a_time_are_in_no_part(tmp_path):
    days = ["" if day % 10 == 0 else day for day in range(NODES)]
    (split,) = imported(tmp_path, days).splits()
    known = np.concatenate([split.train, split.valid, split.test])
    assert sorted(known) == [day for day in range(NODES) if day % 10]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([2020] * NODES, "Too few different times for a split by time"),
        (["spring"] * NODES, "the times of 'when' are neither all numbers nor"),
        ([""] * NODES, "Too few nodes have a time and a label"),
    ],
)
def test_times_that_give_no_split_are_an_error(tmp_path, times, message):
    with pytest.raises(UserError, match=message):
        imported(tmp_path, times)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split_time": "t", "split": "p", "label": "k"}, "exclude each other"),
        ({"split_time": "t"}, "--split-time needs --label"),
    ],
)
def test_a_split_by_time_needs_labels_and_no_other_split(options, message):
    with pytest.raises(UserError, match=message):
        ImportOptions(**options)
