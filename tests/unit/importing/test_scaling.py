"""Scaling of numeric columns at import, and the same scale for new nodes."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from unalike import ImportOptions, UserError, import_graph, open_graph
from unalike.cli.main import main
from unalike.importing.features import FeatureEncoder
from unalike.importing.readers import open_tables
from unalike.importing.scaling import (
    SAMPLE_SIZE,
    SCALES,
    QuantileScale,
    StandardScale,
    ValueSample,
    fit_scale,
    scale_from_dict,
    scale_to_dict,
)

ROWS = 60


def column(seed, draw):
    return draw(np.random.default_rng(seed))


@pytest.fixture
def tables(tmp_path):
    """Edges, and nodes with an age that may be missing and a heavy-tailed revenue."""
    rng = np.random.default_rng(0)
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    pairs = rng.integers(0, ROWS, (200, 2))
    edges.write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in pairs)]))
    lines = ["id,kind,age,revenue,flag,part"]
    for i in range(ROWS):
        age = "" if i % 10 == 0 else str(20 + i)
        part = ("train", "valid", "test")[i % 3]
        revenue = round(float(np.exp(rng.normal(8, 3))), 2)
        lines.append(f"{i},{'ab'[i % 2]},{age},{revenue},{i % 2},{part}")
    nodes.write_text("\n".join(lines))
    return edges, nodes


def imported(tables, out, **options):
    edges, nodes = tables
    options = ImportOptions(label="kind", ignore=("part",), **options)
    summary = import_graph([edges], [nodes], out=out, options=options)
    return open_graph(out), summary


def test_numbers_are_scaled_and_missing_ones_are_marked(tables, tmp_path):
    stored, summary = imported(tables, tmp_path / "g")
    features = stored.graph.features.to_dense().numpy()
    age, missing, revenue, flag = features.T
    assert summary.scaled_columns == 2
    assert missing.tolist() == [float(i % 10 == 0) for i in range(ROWS)]
    assert flag.tolist() == [i % 2 for i in range(ROWS)]
    assert abs(age[missing == 0].mean()) < 0.05
    assert np.abs(revenue).max() < 4
    assert np.allclose(age[missing == 1], age[missing == 1][0])
    assert any("'age' lacks 6 numbers" in note for note in summary.notes)


def test_raw_numbers_are_kept_on_request(tables, tmp_path):
    stored, summary = imported(tables, tmp_path / "g", scale="none")
    assert summary.scaled_columns == 0
    assert stored.graph.features[1, 0] == 21
    ages = [20 + i for i in range(ROWS) if i % 10]
    assert stored.graph.features[0, 0] == np.median(ages)


def test_a_missing_number_can_be_refused(tables, tmp_path):
    with pytest.raises(UserError, match=r"row 1 .*'age' is missing"):
        imported(tables, tmp_path / "g", missing="refuse")
    assert not (tmp_path / "g").exists()


def test_only_train_rows_decide_the_scale(tables, tmp_path):
    nodes = tables[1]
    lines = nodes.read_text().splitlines()
    first, _ = imported(tables, tmp_path / "first", split="part")
    changed = [lines[0], *(_other_test_revenue(line) for line in lines[1:])]
    nodes.write_text("\n".join(changed))
    second, _ = imported(tables, tmp_path / "second", split="part")
    assert first.metadata["feature_columns"] == second.metadata["feature_columns"]
    assert not np.array_equal(first.graph.features, second.graph.features)


def _other_test_revenue(line):
    fields = line.split(",")
    if fields[-1] == "test":
        fields[3] = "1e9"
    return ",".join(fields)


def test_new_nodes_are_scaled_as_at_import(tables, tmp_path):
    stored, _ = imported(tables, tmp_path / "g")
    encoder = FeatureEncoder.from_dict(
        json.loads(json.dumps(stored.metadata["feature_columns"]))
    )
    [table] = open_tables([tables[1]])
    [batch] = table.batches(encoder.names)
    assert np.array_equal(encoder.dense(batch), stored.graph.features.to_dense())


def test_a_warning_where_raw_features_differ_by_orders_of_magnitude(
    tables, tmp_path, capsys
):
    imported(tables, tmp_path / "raw", scale="none")
    imported(tables, tmp_path / "scaled")
    for name, warned in (("raw", True), ("scaled", False)):
        words = ["train", str(tmp_path / name), "mlp", "--epochs", "2", "--splits", "0"]
        assert main(words) == 0
        assert ("orders of magnitude" in capsys.readouterr().err) == warned


def test_standard_scaling_of_normal_values_is_that_of_scikit_learn():
    values = column(1, lambda rng: rng.normal(50, 7, 900))
    expected = StandardScaler().fit_transform(values[:, None])[:, 0]
    assert np.corrcoef(StandardScale.fit(values)(values), expected)[0, 1] > 0.999
    assert not StandardScale.fit(values).log


def test_heavy_tails_are_scaled_by_logarithms():
    values = column(2, lambda rng: np.exp(rng.normal(5, 3, 900)))
    scale = StandardScale.fit(values)
    assert scale.log
    assert np.abs(scale(values)).max() < 5


def test_mostly_zero_columns_keep_their_zeros():
    values = np.where(np.arange(1000) % 10, 0.0, 7.0)
    assert not StandardScale.fit(values)(values)[values == 0].any()


def test_quantiles_are_those_of_scikit_learn():
    values = column(3, lambda rng: rng.integers(0, 30, 2000).astype(float) ** 3)
    expected = QuantileTransformer(n_quantiles=101).fit_transform(values[:, None])
    # scikit-learn maps the extremes to 0 and 1 even if several values share them.
    inner = (values > values.min()) & (values < values.max())
    scaled = QuantileScale.fit(values)(values)
    assert np.allclose(scaled[inner], 2 * expected[inner, 0] - 1)


@given(
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=50),
    st.sampled_from(sorted(SCALES)),
)
@example([0.0, 1.0, 2.2250738585e-313, -2.2250738585e-313], "quantile")
@example([1e-300, 1.0000001e-300, 1e-289, 1.0], "quantile")
def test_scaled_values_are_finite_ordered_and_survive_storage(values, name):
    array = np.array(values)
    scale = fit_scale(name, array)
    if scale is None:
        assert np.isin(array, (0, 1)).all()
        return
    scaled = scale(np.sort(array))
    assert np.isfinite(scaled).all()
    assert (np.diff(scaled) >= -1e-9).all()
    stored = scale_from_dict(json.loads(json.dumps(scale_to_dict(scale))))
    assert np.array_equal(stored(array), scale(array))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "other"},
        {"kind": "standard", "low": 0},
        {"kind": "standard", "log": False, "low": 0, "high": 1, "mean": 0, "std": 0},
        {"kind": "quantile", "quantiles": [1.0]},
        {"kind": "quantile", "quantiles": "abc"},
    ],
)
def test_a_scale_that_cannot_be_applied_is_refused(document):
    with np.errstate(all="ignore"), pytest.raises(UserError, match="scale"):
        scale_from_dict(document)


@given(st.lists(st.integers(0, 60_000), max_size=12))
def test_a_sample_takes_every_kth_value_whatever_the_batches(lengths):
    sample, start = ValueSample(), 0
    for length in lengths:
        sample.add(np.arange(start, start + length, dtype=float))
        start += length
    values = sample.values()
    assert len(values) <= SAMPLE_SIZE
    assert np.array_equal(values, np.arange(0, start, sample.stride))
