"""Measures, label views and scores in DuckDB beside those of a stored graph.

python benchmarks/warehouse.py --json                 pokec-twin, in 8 GB
python benchmarks/warehouse.py --nodes 20000 --json   the twin with fewer nodes
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from unalike import LINKX, Task, Training, measure, twin, warehouse
from unalike.data.metrics import ACCURACY
from unalike.data.split import random_splits
from unalike.inference.model import fit_model
from unalike.measures.registry import MATRIX_MEASURES, ONE_PASS_MEASURES
from unalike.views.folds import Folds
from unalike.views.table import SharedViews, ViewTable

ONE_PASS = [*ONE_PASS_MEASURES, *MATRIX_MEASURES]


def timed(work):
    """The seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = work()
    return round(time.perf_counter() - start, 2), result


def to_duckdb(graph, folder, memory, threads):
    """The edges and nodes of a graph as tables of a DuckDB file."""
    connection = duckdb.connect(folder / "graph.db")
    connection.execute(f"SET memory_limit = '{memory}'; SET threads = {threads}")
    connection.execute(f"SET temp_directory = '{folder / 'spill'}'")
    edges = folder / "edges.parquet"
    schema = pa.schema({"source": pa.int64(), "target": pa.int64()})
    with pq.ParquetWriter(edges, schema) as writer:
        for first in range(0, graph.num_nodes, 100_000):
            rows = graph.adjacency[first : first + 100_000]
            source = (rows.row_indices + first).numpy()
            target = rows.indices.long().numpy()
            writer.write_table(pa.table({"source": source, "target": target}))
    connection.execute(f"CREATE TABLE edges AS FROM '{edges}'")
    labels = graph.labels.numpy()
    nodes = {"id": range(graph.num_nodes), "label": pa.array(labels, mask=labels < 0)}
    nodes |= {
        f"x{n}": graph.features[:, n].float().numpy() for n in range(graph.num_features)
    }
    connection.register("given", pa.table(nodes))
    connection.execute("CREATE TABLE nodes AS FROM given")
    return connection


def local_views(graph):
    """Label views of all nodes, as the package `views` makes them."""
    train = (graph.labels >= 0).nonzero()[:, 0]
    task = Task(graph, train, torch.arange(0), ACCURACY)
    shared = SharedViews.of(graph, ("labels",), 2)
    return ViewTable.of(shared, task, Folds.draw(graph.num_nodes, 5, 0))


def main():
    """Print the seconds of each and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    graph = twin("pokec", num_nodes=options.nodes).load()
    threads = torch.get_num_threads()
    found = {"nodes": graph.num_nodes, "entries": graph.adjacency.nnz}
    found |= {"threads": threads, "memory_limit": options.memory}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connection = to_duckdb(graph, folder, options.memory, threads)
        edges, nodes = connection.table("edges"), connection.table("nodes")
        unlabelled = connection.sql("SELECT * EXCLUDE label FROM nodes")
        [split] = random_splits(graph.labels, count=1)
        task = Task.from_split(graph, split, ACCURACY, 0)
        method = LINKX(hidden=16, training=Training(epochs=1))
        model, _ = fit_model(method, task)
        measured = {"only": ONE_PASS}
        jobs = {
            "measures": (
                lambda: warehouse.measure(edges, nodes, label="label", **measured),
                lambda: measure(graph, **measured),
            ),
            "views": (
                lambda: warehouse.views(edges, nodes, label="label"),
                lambda: local_views(graph),
            ),
            "scores": (
                lambda: warehouse.score(
                    model, edges, unlabelled, out=folder / "scores.parquet"
                ),
                lambda: model.scores(graph),
            ),
        }
        for job, (in_engine, local) in jobs.items():
            seconds, _ = timed(in_engine)
            own, _ = timed(local)
            ratio = round(seconds / own, 1)
            found[job] = {"duckdb_seconds": seconds, "seconds": own, "ratio": ratio}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak_gb"] = round(peak / 2**20, 1)
    print(json.dumps(found) if options.json else found)


if __name__ == "__main__":
    main()
