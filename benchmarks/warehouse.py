"""Measures, views and scores in DuckDB beside those of a stored graph and of files.

python benchmarks/warehouse.py --json                 pokec-twin, DuckDB within 6 GB
python benchmarks/warehouse.py --nodes 20000 --json   the twin with fewer nodes
python benchmarks/warehouse.py --jobs measures        only some of the work
python benchmarks/warehouse.py --folder F --jobs      only make the tables, in a folder
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import torch
from views import WARM_UP_NODES, Stages

from unalike import (
    LINKX,
    ImportOptions,
    StoredGraph,
    Task,
    Training,
    import_graph,
    measure,
    open_graph,
    twin,
    warehouse,
)
from unalike.cli.main import main as unalike
from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY
from unalike.inference.model import fit_model
from unalike.measures.registry import MATRIX_MEASURES, ONE_PASS_MEASURES
from unalike.views.folds import Folds
from unalike.views.table import SharedViews, ViewTable

ONE_PASS = [*ONE_PASS_MEASURES, *MATRIX_MEASURES]
JOBS = ("measures", "views", "scores")


class Warehouse:
    """A graph as tables of a DuckDB file, and stored by an import of them.

    What is in the folder already is used again.
    """

    def __init__(
        self, num_nodes: int | None, folder: Path, memory: str, stages: Stages
    ) -> None:
        self.folder, self.stages = folder, stages
        self.connection = connect(num_nodes, folder, memory)
        self.edges = self.connection.table("edges")
        self.nodes = self.connection.table("nodes")
        options = ImportOptions(label="label", scale="none")
        if not (folder / "graph").exists():
            stages.run(
                "import",
                lambda: import_graph(
                    self.edges, self.nodes, out=folder / "graph", options=options
                ),
            )
        self.stored: StoredGraph = open_graph(folder / "graph")
        self.graph = self.stored.load()

    def run(self, job: str) -> dict[str, object]:
        """Do a job in DuckDB and on the stored graph or on files."""
        in_engine, local = getattr(self, job)()
        found = self.stages.run(f"{job} in DuckDB", in_engine)
        expected = self.stages.run(f"{job} of files", local)
        if job == "measures":
            for name in ONE_PASS:
                assert np.allclose(found[name], expected[name], rtol=1e-9, atol=1e-9)
        engine, own = self.stages.rows[-2:]
        ratios = {
            f"times_{key}": engine[key] / own[key] for key in ("seconds", "cpu_seconds")
        }
        return {"job": job, "duckdb": engine, "files": own, **ratios}

    def measures(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """The measures of one pass over the edges."""
        return (
            lambda: warehouse.measure(
                self.edges, self.nodes, label="label", only=ONE_PASS
            ),
            lambda: measure(self.graph, only=ONE_PASS),
        )

    def views(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """Structure, and label histograms up to two steps away."""
        return (
            lambda: warehouse.views(self.edges, self.nodes, label="label"),
            lambda: local_views(self.graph),
        )

    def scores(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """Scores of as many new nodes as the graph has, to a file."""
        model = self.trained_model()
        shift = f"+ {self.graph.num_nodes} AS"
        tables = {
            "edges": f"SELECT source {shift} source, target FROM edges",
            "nodes": f"SELECT id {shift} id, * EXCLUDE (id, label) FROM nodes",
        }
        new = [self.connection.sql(query) for query in tables.values()]
        out = Path(tempfile.mkdtemp(dir=self.folder))
        words = ["predict", str(model), "--out", str(out / "files.parquet")]
        for name, query in tables.items():
            path = self.folder / f"new-{name}.parquet"
            if not path.exists():
                self.connection.execute(f"COPY ({query}) TO '{path}'")
            words += [f"--{name}", str(path)]
        return (
            lambda: warehouse.score(model, *new, out=out / "engine.parquet"),
            lambda: quiet(words),
        )

    def trained_model(self) -> Path:
        """A LINKX after one epoch: it scores as slowly as a trained one."""
        path = self.folder / "model.safetensors"
        if path.exists():
            return path
        [split, *_] = self.stored.splits()
        task = Task.from_split(self.graph, split, ACCURACY, 0)
        method = LINKX(hidden=16, training=Training(epochs=1))
        model, _ = fit_model(method, task, stored=self.stored)
        model.save(path)
        return path


def connect(
    num_nodes: int | None, folder: Path, memory: str
) -> duckdb.DuckDBPyConnection:
    """The edges and nodes of pokec-twin as tables of a DuckDB file."""
    is_new = not (folder / "graph.db").exists()
    connection = duckdb.connect(folder / "graph.db")
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute(f"SET threads = {torch.get_num_threads()}")
    connection.execute(f"SET temp_directory = '{folder / 'spill'}'")
    if is_new:
        write_tables(connection, twin("pokec", num_nodes=num_nodes).load())
    return connection


def write_tables(connection: duckdb.DuckDBPyConnection, graph: Graph) -> None:
    """Write the tables `edges` and `nodes` of a graph."""
    rows, labels = graph.adjacency, graph.labels.numpy()
    ends = {"source": rows.row_indices.numpy(), "target": rows.indices.numpy()}
    nodes = {
        "id": np.arange(graph.num_nodes),
        "label": pa.array(labels, mask=labels < 0),
        **{f"x{n}": graph.features[:, n].numpy() for n in range(graph.num_features)},
    }
    for name, columns in (("edges", ends), ("nodes", nodes)):
        connection.register("given", pa.table(columns))
        connection.execute(f"CREATE TABLE {name} AS FROM given")
        connection.unregister("given")


def local_views(graph: Graph) -> ViewTable:
    """Structure and label views of all nodes, as the package `views` makes them."""
    train = (graph.labels >= 0).nonzero()[:, 0]
    task = Task(graph, train, torch.arange(0), ACCURACY)
    shared = SharedViews.of(graph, ("structure", "labels"), 2)
    return ViewTable.of(shared, task, Folds.draw(graph.num_nodes, 5, 0))


def quiet(words: list[str]) -> None:
    """Run a command without its output."""
    with redirect_stdout(StringIO()):
        assert unalike(words) == 0


def main() -> None:
    """Print the seconds and the memory of each, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--memory", default="6GB", help="memory limit of DuckDB")
    parser.add_argument("--jobs", nargs="*", choices=JOBS, default=list(JOBS))
    parser.add_argument("--folder", type=Path, help="where the tables are and remain")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    device = torch.device("cpu")
    with tempfile.TemporaryDirectory() as name:
        # All loops are compiled before anything is timed.
        folder = Path(name, "warm-up")
        folder.mkdir()
        small = Warehouse(WARM_UP_NODES // 10, folder, options.memory, Stages(device))
        for job in options.jobs:
            small.run(job)
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        stages = Stages(device)
        tables = Warehouse(options.nodes, folder, options.memory, stages)
        result = {
            "nodes": tables.graph.num_nodes,
            "entries": tables.graph.adjacency.nnz,
            "features": tables.graph.num_features,
            "threads": torch.get_num_threads(),
            "memory_limit": options.memory,
            "rows": [tables.run(job) for job in options.jobs],
            "stages": stages.rows,
        }
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['nodes']:,} nodes, {result['entries']:,} entries")
    for row in result["rows"]:
        print(f"{row['job']}: {row['times_seconds']:.1f} times as long in DuckDB")


if __name__ == "__main__":
    main()
