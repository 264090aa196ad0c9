"""Imported edges equal sets of pairs, for all types of ids and formats."""

import csv
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import ImportOptions, UserError, import_graph, open_graph, verify_graph
from unalike.importing import csr, parquet, readers
from unalike.importing.ids import IdIndex

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
FEW = st.integers(0, 5)
WORDS = st.text("abé0,;\"' 1", min_size=1, max_size=4).map(str.strip).filter(bool)
PADDED = st.sampled_from(["1", "01", "001", "-1", "2"])
KINDS = (FEW, INT64, UINT64, WORDS, PADDED)


def edge_lists():
    return st.one_of(
        *(st.lists(st.tuples(ids, ids), min_size=1, max_size=30) for ids in KINDS)
    )


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    """Use chunks so small that a few edges cross every boundary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "READ_PAIRS", 3)
        patch.setattr(csr, "MAX_BLOCK_NNZ", 4)
        patch.setattr(parquet, "BATCH_VALUES", 8)
        patch.setattr(parquet, "MIN_ROWS", 4)
        patch.setattr(readers, "CSV_BLOCK_BYTES", 64)
        yield


def write_csv(path, pairs):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("source", "target"), *pairs])
    return path


def write_parquet(path, pairs):
    source, target = map(list, zip(*pairs, strict=True))
    kind = pa.uint64() if max_number(pairs) >= 2**63 else None
    columns = {"source": pa.array(source, kind), "target": pa.array(target, kind)}
    pq.write_table(pa.table(columns), path)
    return path


def max_number(pairs):
    return max(
        (end for pair in pairs for end in pair if isinstance(end, int)), default=0
    )


def expected(pairs, directed):
    """Names and sorted pairs in plain Python."""
    names = sorted({end for pair in pairs for end in pair})
    if all(isinstance(name, str) and str_is_whole(name) for name in names):
        names = sorted(map(int, names))
        pairs = [(int(u), int(v)) for u, v in pairs]
    elif isinstance(names[0], str):
        names = sorted(names, key=str.encode)
    index_of = {name: number for number, name in enumerate(names)}
    entries = {(index_of[u], index_of[v]) for u, v in pairs}
    if not directed:
        entries |= {(v, u) for u, v in entries}
    return names, sorted(entries)


def str_is_whole(name):
    try:
        return str(int(name)) == name
    except ValueError:
        return False


def entries_of(stored):
    rows = stored.graph.adjacency
    return list(zip(rows.row_indices.tolist(), rows.indices.tolist(), strict=True))


def arrays_of(stored):
    return {name: facts["sha256"] for name, facts in stored.metadata["arrays"].items()}


@settings(max_examples=60)
@given(edge_lists(), st.booleans())
@pytest.mark.long
def test_any_edge_list_gives_the_rows_of_a_set_of_pairs(pairs, directed):
    options = ImportOptions(directed=directed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        summary = import_graph(
            [write_csv(folder / "e.csv", pairs)], out=folder / "csv", options=options
        )
        import_graph(
            [write_parquet(folder / "e.parquet", pairs)],
            out=folder / "parquet",
            options=options,
        )
        stored = verify_graph(folder / "csv")
        other = verify_graph(folder / "parquet")
        names, entries = expected(pairs, directed)
        assert stored.names.to_pylist() == names
        assert entries_of(stored) == entries
        assert arrays_of(stored) == arrays_of(other)
        assert summary.nodes == stored.graph.num_nodes
        assert summary.edges == stored.graph.num_edges == stored.metadata["num_edges"]
        assert summary.loops == stored.graph.num_loops == stored.metadata["num_loops"]
        assert summary.edges + summary.repeats == len(pairs)
        assert summary.isolated == 0


@settings(max_examples=60)
@given(st.lists(st.lists(st.one_of(*KINDS), min_size=1), min_size=1, max_size=5))
def test_the_index_numbers_ids_as_a_dict_does(batches):
    index, known = IdIndex(), {}
    for batch in batches:
        ids = pa.array(map(str, batch))
        codes = [known.setdefault(str(name), len(known)) for name in batch]
        assert index.add(ids).tolist() == codes
        assert index.find(ids).tolist() == codes
    assert list(map(str, index.names().to_pylist())) == list(known)
    assert index.find(pa.array(["no such id"])).tolist() == [-1]


def test_integers_and_strings_share_one_index():
    index = IdIndex()
    assert index.add(pa.array([7, -3, 7])).tolist() == [0, 1, 0]
    assert index.add(pa.array(["7", "x", "-3"])).tolist() == [0, 2, 1]
    assert index.add(pa.array([7, 8])).tolist() == [0, 3]
    assert index.names().to_pylist() == ["7", "-3", "x", "8"]


def test_the_index_grows_past_many_ids():
    index = IdIndex()
    ids = np.arange(200_000) * 2**40
    for part in np.array_split(ids, 7):
        index.add(pa.array(part))
    assert (index.find(pa.array(ids)) == np.arange(len(ids))).all()
    index.add(pa.array(["a word"]))
    assert (index.find(pa.array(ids)) == np.arange(len(ids))).all()


def test_one_node_with_a_self_loop(tmp_path):
    summary = import_graph(
        [write_csv(tmp_path / "e.csv", [(5, 5)])], out=tmp_path / "g"
    )
    assert (summary.nodes, summary.edges, summary.loops, summary.repeats) == (
        1,
        1,
        1,
        0,
    )
    stored = open_graph(tmp_path / "g")
    assert stored.names.to_pylist() == [5]
    assert stored.splits() == []
    assert stored.graph.labels.tolist() == [-1]


def test_integral_floats_are_ids(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 3.0], "b": [3.0, 2.0]}), tmp_path / "e.parquet")
    import_graph([tmp_path / "e.parquet"], out=tmp_path / "g")
    assert open_graph(tmp_path / "g").names.to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "largest"),
    [(pa.float64(), 2**53 - 1), (pa.float32(), 2**24 - 1), (pa.float16(), 2**11 - 1)],
    ids=str,
)
def test_float_ids_that_floats_round_are_refused(tmp_path, kind, largest):
    fits = pa.array(np.array([largest, -largest], kind.to_pandas_dtype()), kind)
    pq.write_table(pa.table({"a": fits, "b": fits}), tmp_path / "e.parquet")
    import_graph([tmp_path / "e.parquet"], out=tmp_path / "g")
    assert open_graph(tmp_path / "g").names.to_pylist() == [-largest, largest]
    for first in (largest + 1, -largest - 1):
        rounded = np.array([1, first], np.float64).astype(kind.to_pandas_dtype())
        table = pa.table({"a": fits, "b": pa.array(rounded, kind)})
        pq.write_table(table, tmp_path / "e.parquet")
        with pytest.raises(UserError, match=rf"row 2.*{first} is too large for a"):
            import_graph([tmp_path / "e.parquet"], out=tmp_path / "h")


@pytest.mark.parametrize("value", [9.3e18, -1e19, 1e300])
def test_float_ids_beyond_int64_are_refused(tmp_path, value):
    table = pa.table({"a": [1.0, value], "b": [2.0, 3.0]})
    pq.write_table(table, tmp_path / "e.parquet")
    with pytest.raises(UserError, match="is too large for a double"):
        import_graph([tmp_path / "e.parquet"], out=tmp_path / "g")


def test_dictionary_encoded_text_is_text(tmp_path):
    coded = pa.array(["x", "y", "x"]).dictionary_encode()
    pq.write_table(pa.table({"u": coded, "v": coded}), tmp_path / "e.parquet")
    summary = import_graph([tmp_path / "e.parquet"], out=tmp_path / "g")
    assert (summary.nodes, summary.edges, summary.loops, summary.repeats) == (
        2,
        2,
        2,
        1,
    )
    assert open_graph(tmp_path / "g").names.to_pylist() == ["x", "y"]


def write_tables(tmp_path, edges, nodes):
    (tmp_path / "e.csv").write_text(edges)
    (tmp_path / "n.csv").write_text(nodes)
    return [tmp_path / "e.csv"], [tmp_path / "n.csv"]


def test_edge_columns_are_guessed_by_the_ids_of_the_node_table(tmp_path):
    edges = "weight,buyer,when,seller\n.5,a,2020,b\n1,b,2021,c\n"
    tables = write_tables(tmp_path, edges, "id,kind\na,x\nb,y\nc,x\n")
    summary = import_graph(*tables, out=tmp_path / "g")
    assert summary.edges == 2
    assert any("'buyer' and 'seller' are taken" in note for note in summary.notes)
    assert any(note.endswith("not used: weight, when.") for note in summary.notes)


@pytest.mark.parametrize("unknown", ["refuse", "drop"])
def test_float_ids_are_named_where_the_node_table_has_integers(tmp_path, unknown):
    edges = "".join(f"{i}.0,{i + 1}.0\n" for i in range(20))
    nodes = "".join(f"{i},{'xy'[i % 2]}\n" for i in range(21))
    tables = write_tables(tmp_path, f"u,v\n{edges}", f"id,kind\n{nodes}")
    expected = {
        "refuse": "the node table, which has '0': store ids as integers",
        "drop": "20 of 20 edges have an end that is not in the node table, by the "
        "columns 'u' and 'v'",
    }
    with pytest.raises(UserError, match=expected[unknown]):
        import_graph(
            *tables, out=tmp_path / "g", options=ImportOptions(unknown=unknown)
        )
    assert not (tmp_path / "g").exists()


def test_some_edges_may_be_dropped(tmp_path):
    edges = "".join(f"{i % 10},{i}\n" for i in range(50))
    nodes = "".join(f"{i}\n" for i in range(10))
    tables = write_tables(tmp_path, f"u,v\n{edges}", f"id\n{nodes}")
    options = ImportOptions(unknown="drop")
    assert import_graph(*tables, out=tmp_path / "g", options=options).dropped == 40


def test_odd_columns_are_noted(tmp_path):
    rows = "".join(f'{i},label{i},"{i},{i % 10}"\n' for i in range(120))
    tables = write_tables(tmp_path, "u,v\n1,2\n", f"id,kind,price\n{rows}")
    options = ImportOptions(label="kind")
    notes = import_graph(*tables, out=tmp_path / "g", options=options).notes
    assert any("'price' looks like numbers with a decimal comma" in n for n in notes)
    assert any("120 classes for 120 nodes" in note for note in notes)
