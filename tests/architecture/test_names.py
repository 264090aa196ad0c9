"""Public names, and tables that leave nothing out."""

import ast
import inspect
from importlib import import_module

import pytest
from sources import ROOT, modules

import unalike
import unalike.data
from unalike import DATASETS, MEASURES, METRICS
from unalike.cli.main import COMMANDS
from unalike.data.metrics import Metric
from unalike.datasets.base import Dataset
from unalike.datasets.twins import TWINS
from unalike.datasets.twins.twin import Twin
from unalike.measures.registry import (
    MATRIX_MEASURES,
    ONE_PASS_MEASURES,
    OWN_PASS_MEASURES,
)
from unalike.methods import METHODS
from unalike.methods.base import Method

PUBLIC = {
    "APPNP",
    "A2DUG",
    "ACMGCN",
    "DirGNN",
    "FSGNN",
    "GloGNN",
    "Poly",
    "Polynormer",
    "SAGE",
    "Adjacency",
    "Advice",
    "CorrectAndSmooth",
    "DATASETS",
    "GAT",
    "GATJK",
    "GCN",
    "GCNII",
    "GCNJK",
    "GPRGNN",
    "Graph",
    "H2GCN",
    "ImportOptions",
    "LINK",
    "LINKConcat",
    "LINKX",
    "LabelPropagation",
    "MEASURES",
    "METHODS",
    "METRICS",
    "MLP",
    "Metric",
    "MixHop",
    "Model",
    "NodeClassifier",
    "Result",
    "RunOptions",
    "Runs",
    "SGC",
    "Solution",
    "Split",
    "SqlQuery",
    "StoredGraph",
    "Task",
    "Training",
    "Twin",
    "UserError",
    "Views",
    "ViewsTrees",
    "__version__",
    "advise",
    "expected_calibration_error",
    "find",
    "import_graph",
    "load",
    "load_model",
    "measure",
    "method",
    "open_graph",
    "quantile_labels",
    "random_splits",
    "read_graph",
    "register",
    "run",
    "save_graph",
    "temperature",
    "tune",
    "twin",
    "verify_graph",
    "view_table",
}


def test_public_names_are_these():
    assert set(unalike.__all__) == PUBLIC
    assert dir(unalike) == sorted(PUBLIC)


def test_stub_and_lazy_exports_agree():
    stub = ast.parse((ROOT / "__init__.pyi").read_text("utf-8"))
    stubbed = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stubbed == {
        name: f"unalike.{home}" for name, home in unalike.EXPORTS.items()
    }


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there(name):
    assert getattr(unalike, name) is not None


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'graf'"):
        _ = unalike.graf


@pytest.mark.parametrize(
    ("old", "new"), [("Place", "RunOptions"), ("Stored", "StoredGraph")]
)
def test_old_names_still_work_and_warn(old, new):
    with pytest.warns(DeprecationWarning, match=rf"unalike\.{old}.*unalike\.{new}"):
        assert getattr(unalike, old) is getattr(unalike, new)


@pytest.mark.parametrize("name", sorted(unalike.data.EXPORTS))
def test_public_names_of_data_are_imported_on_use(name):
    home = import_module(f"unalike.data.{unalike.data.EXPORTS[name]}")
    assert getattr(unalike.data, name) is getattr(home, name)
    assert name in dir(unalike.data)


def test_public_names_of_data_are_declared_for_type_checkers():
    declared = {
        alias.asname
        for node in ast.walk(ast.parse((ROOT / "data/__init__.py").read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("unalike.data.")
        for alias in node.names
    }
    assert declared == set(unalike.data.EXPORTS)
    with pytest.raises(
        AttributeError, match=r"'unalike\.data' has no attribute 'graf'"
    ):
        _ = unalike.data.graf


def members(package):
    """The things that modules of a package name at their top, one by one."""
    for name in modules(package):
        module = import_module(f"unalike.{package}.{name}")
        for value in vars(module).values():
            yield from (value if isinstance(value, tuple | list) else (value,))


def test_every_method_is_in_the_table():
    found = {
        one
        for one in members("methods")
        if inspect.isclass(one)
        and issubclass(one, Method)
        and not inspect.isabstract(one)
    }
    assert found == set(METHODS.values())


@pytest.mark.parametrize(
    ("package", "kind", "table"),
    [("datasets", Dataset, DATASETS), ("datasets.twins", Twin, TWINS)],
)
def test_every_dataset_is_in_its_table(package, kind, table):
    found = [one for one in members(package) if isinstance(one, kind)]
    assert found
    assert {one.name for one in found} <= set(table)
    assert all(name == one.name for name, one in table.items())


def test_every_measure_is_in_the_table():
    named = {
        name
        for module in modules("measures")
        for name, one in vars(import_module(f"unalike.measures.{module}")).items()
        if name.endswith("homophily") and inspect.isfunction(one)
    }
    assert len(named) > 5
    assert named <= set(MEASURES)
    assert set(MEASURES) == {*ONE_PASS_MEASURES, *MATRIX_MEASURES, *OWN_PASS_MEASURES}


def test_every_metric_is_in_the_table():
    module = import_module("unalike.data.metrics")
    found = [one for one in vars(module).values() if isinstance(one, Metric)]
    assert found
    assert all(one in METRICS.values() for one in found)
    assert all(name == one.name for name, one in METRICS.items())


def test_every_command_is_in_the_table():
    assert modules("cli") - {"main", "console"} == set(COMMANDS)
