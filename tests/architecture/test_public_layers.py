"""Public names of unalike.nn are imported on use and declared for type checkers."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest
import torch
from sources import ROOT
from torch import nn

import unalike.nn
from unalike import Adjacency


@pytest.mark.parametrize("name", sorted(unalike.nn.EXPORTS))
def test_public_names_are_imported_on_use(name):
    module = import_module(f"unalike.nn.{unalike.nn.EXPORTS[name]}")
    assert getattr(unalike.nn, name) is getattr(module, name)
    assert name in dir(unalike.nn)


def test_public_names_are_declared_for_type_checkers():
    tree = ast.parse((ROOT / "nn/__init__.py").read_text("utf-8"))
    declared = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("unalike.nn.")
        for alias in node.names
    }
    assert declared == {
        name: f"unalike.nn.{module}" for name, module in unalike.nn.EXPORTS.items()
    }


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match=r"'unalike\.nn' has no attribute 'GNC'"):
        _ = unalike.nn.GNC


def test_importing_the_package_loads_no_torch():
    code = "import sys, unalike.nn; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_public_layers_make_a_network():
    rows = Adjacency.from_edges(
        torch.tensor([0, 1]), torch.tensor([1, 2]), shape=(3, 3)
    )
    first = unalike.nn.SparseLinear("adjacency", 3, 4)
    mlp = unalike.nn.MLP(first, [4, 4, 2], dropout=0.5).eval()
    assert isinstance(mlp, nn.Module)
    dense = rows.to_dense() @ first.weight + first.bias
    torch.testing.assert_close(first(rows), dense)
    out = unalike.nn.GCNNorm.of(rows) @ mlp(rows)
    assert out.shape == (3, 2)
