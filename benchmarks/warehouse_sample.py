"""What `warehouse.sample` does to estimates: twins of datasets beside their samples.

python benchmarks/warehouse_sample.py --json
python benchmarks/warehouse_sample.py --only arxiv-year-twin --size 500 --epochs 50
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike import (
    GCN,
    LINKX,
    MLP,
    Graph,
    ImportOptions,
    StoredGraph,
    Training,
    find,
    measure,
    open_graph,
    run,
    warehouse,
)

TWINS = ("arxiv-year-twin", "genius-twin", "twitch-gamers-twin")
MEASURES = ("edge_homophily", "adjusted_homophily")
METHODS = (MLP, LINKX, GCN)
HEADS = [
    "graph",
    "nodes",
    "edge homophily",
    "adjusted homophily",
    *(f"{method.__name__} test" for method in METHODS),
]


def tables(graph: Graph) -> tuple[pa.Table, pa.Table]:
    """The edges and nodes of a graph as Arrow tables."""
    labels = graph.labels.numpy()
    ends = graph.adjacency.row_indices.numpy(), graph.adjacency.indices.numpy()
    nodes = {
        "id": np.arange(graph.num_nodes),
        "label": pa.array(labels, mask=labels < 0),
        **{f"x{n}": graph.features[:, n].numpy() for n in range(graph.num_features)},
    }
    return pa.table(dict(zip(("source", "target"), ends, strict=True))), pa.table(nodes)


def sampled(graph: Graph, size: int, folder: Path) -> StoredGraph:
    """The stored sample of a graph."""
    warehouse.sample(
        *tables(graph),
        size,
        out=folder / "sample",
        label="label",
        id="id",
        options=ImportOptions(scale="none"),
    )
    return open_graph(folder / "sample")


def row(name: str, graph: Graph, source: object, epochs: int) -> list[object]:
    """Measures of a graph, and test scores of methods on its first split."""
    values = measure(graph, only=MEASURES)
    training = Training(epochs=epochs)
    runs = [run(source, m(hidden=32, training=training), splits=[0]) for m in METHODS]
    return [
        name,
        graph.num_nodes,
        *(round(values[measure_name], 3) for measure_name in MEASURES),
        *(round(one[0].test, 1) for one in runs),
    ]


def rows_of(names: list[str], size: int, epochs: int) -> list[list[object]]:
    """Two rows for each twin: the whole graph, and its sample."""
    found = []
    for name in names:
        source = find(name)
        graph = source.prepared()
        found.append(row(name, graph, source, epochs))
        with tempfile.TemporaryDirectory() as folder:
            sample = sampled(graph, size, Path(folder))
            found.append(row(f"{size:,} of its nodes", sample.load(), sample, epochs))
    return found


def main() -> None:
    """Print the measures and scores of each graph and of its sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(TWINS))
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = rows_of(options.only, options.size, options.epochs)
    if options.json:
        print(json.dumps({"heads": HEADS, "left": 1, "rows": rows}))
        return
    for values in (HEADS, *rows):
        print("  ".join(f"{value!s:>18}" for value in values))


if __name__ == "__main__":
    main()
