"""Odd tables: the edges that another reader finds, or an error of one line."""

import csv
import io
import random
import shutil

from unalike import UserError, import_graph, open_graph

FIELDS = ["a", "b", "7", "-3", '"q"', '"x,y"', '"l\nm"']
FIELDS += ['a"b', '"', "", " c ", "\u00a0d"]


def edge_text(rng: random.Random) -> str:
    """Lines of an edge list, most of them valid."""
    ends = rng.choice(["\n", "\r\n", "\r"])
    odd = FIELDS if rng.random() < 0.5 else FIELDS[:5]
    rows = [[rng.choice(odd) for _ in range(2)] for _ in range(rng.randrange(1, 12))]
    if rng.random() < 0.2:
        rows.append(["alone"])
    start = rng.choice(["", "\ufeff", "\n"])
    last = rng.choice(["", ends])
    return start + ends.join(["source,target", *map(",".join, rows)]) + last


def edges_by_csv(text: str) -> set[frozenset[str]] | None:
    """The edges as Python's csv reads them; None where a row is invalid."""
    mark = "last line"
    lines = io.StringIO(f"{text.removeprefix(chr(0xFEFF))}\n{mark}", newline="")
    rows = [row for row in csv.reader(lines) if row]
    if rows.pop() != [mark]:
        return None
    edges = set()
    for row in rows[1:]:
        values = [value.strip() for value in row]
        if len(values) != 2 or not all(values):
            return None
        edges.add(frozenset(values))
    return edges or None


def stored_edges(folder):
    stored = open_graph(folder)
    names = [str(name) for name in stored.names.to_pylist()]
    adjacency = stored.graph.adjacency
    pairs = zip(adjacency.row_indices.tolist(), adjacency.indices.tolist(), strict=True)
    return {frozenset((names[u], names[v])) for u, v in pairs}


def test_an_imported_file_has_the_edges_that_another_reader_finds(tmp_path, cases):
    for number, rng in enumerate(cases):
        text, out = edge_text(rng), tmp_path / f"graph{number}"
        (tmp_path / "e.csv").write_text(text, "utf-8", newline="")
        expected = edges_by_csv(text)
        try:
            import_graph([tmp_path / "e.csv"], out=out)
            found = stored_edges(out)
        except UserError:
            found = None
        assert found == expected, repr(text)
        shutil.rmtree(out, ignore_errors=True)
