"""Imports point one way, stay at home, and come when they are needed."""

import ast
import subprocess
import sys

import pytest
from sources import FILES, family, imported, tree

LAYERS = [
    {"errors", "version", "progress", "formatting", "lazy_exports"},
    {"display", "http_server", "options", "parallel", "system"},
    {"device", "files"},
    {"data"},
    {"nn"},
    {"importing", "datasets", "measures"},
    {"pyg", "samplers", "wiki"},
    {"training"},
    {"views"},
    {"methods"},
    {"inference"},
    {"warehouse"},
    {"experiments"},
    {"advice"},
    {"bench"},
    {"reports"},
    {"cli"},
    {"__init__", "__main__"},
]
"""From the bottom to the top; packages of one layer do not import each other."""

UPWARD = {("data/adjacency.py", "unalike.nn.sparse")}
"""`Adjacency @ x` needs the sparse product; no other import points up."""

HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}

NETWORK = {"urllib.request", "urllib.error", "http", "socket", "ssl", "ftplib"}
OPTIONAL = {
    "duckdb",
    "fsspec",
    "lightgbm",
    "matplotlib",
    "networkx",
    "optuna",
    "pandas",
    "polars",
    "pymetis",
    "pyspark",
    "sklearn",
    "torch_geometric",
}
ESTIMATOR = {
    ("inference/classifier.py", "sklearn"),
    ("inference/input_validation.py", "sklearn"),
}
"""The modules of NodeClassifier, which no command imports."""
PYG_DATA = {("pyg/graph_dataset.py", "torch_geometric")}
"""A subclass of PyTorch Geometric's Data, imported when a dataset is opened."""
HEAVY = ("torch", "numpy", "scipy", "numba", "pyarrow", "tyro", "rich", "jaxtyping")


def test_every_part_has_its_layer():
    assert {family(file) for file in FILES} == set(HEIGHT)


def test_imports_point_down():
    wrong = []
    for file in FILES:
        for module in imported(file):
            if module.startswith("unalike."):
                own, other = family(file), family(module.removeprefix("unalike."))
                if other != own and HEIGHT[other] >= HEIGHT[own]:
                    wrong.append((file, module))
    assert set(wrong) == UPWARD


def starts_with(module, names):
    return any(module == name or module.startswith(f"{name}.") for name in names)


def test_two_files_ask_the_network_and_three_answer_it():
    speaks = {
        file
        for file in FILES
        for module in imported(file)
        if starts_with(module, NETWORK)
    }
    asks = {"datasets/download.py", "wiki/api_client.py"}
    answers = {"http_server.py", "reports/site/server.py", "inference/server.py"}
    assert speaks == asks | answers


def at_once(nodes):
    """The imports that run when a file is imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_once(node.orelse)
        elif not isinstance(node, ast.FunctionDef):
            yield from at_once(ast.iter_child_nodes(node))


def test_what_few_need_is_imported_late():
    early = {
        (file, module.partition(".")[0])
        for file in FILES
        for module in at_once(tree(file).body)
        if starts_with(module, OPTIONAL)
    }
    assert early == ESTIMATOR | PYG_DATA


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["nonsense"], []], ids=" ".join
)
def test_the_overview_loads_nothing_heavy(words):
    code = (
        "import sys; from unalike.cli.main import main; "
        f"main({words}); print(*sys.modules, file=sys.stderr)"
    )
    run = [sys.executable, "-c", code]
    loaded = subprocess.run(run, capture_output=True, text=True, check=True).stderr
    assert not set(loaded.split()) & set(HEAVY)


@pytest.mark.long
def test_commands_start_without_what_few_of_them_need():
    code = "import sys, unalike.cli.train; print(*sys.modules)"
    run = [sys.executable, "-c", code]
    loaded = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert not set(loaded.split()) & {*OPTIONAL, "torch.distributed.checkpoint"}
