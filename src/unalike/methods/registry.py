"""Table of trained methods; `method` and `register` add new ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import field, make_dataclass
from importlib.metadata import entry_points
from inspect import Parameter, isclass, signature
from typing import Any

from torch import nn

from unalike.data.graph import Graph
from unalike.errors import UserError
from unalike.methods.a2dug import A2DUG
from unalike.methods.acm_gcn import ACMGCN
from unalike.methods.appnp import APPNP
from unalike.methods.base import (
    MessagePassingMethod,
    Method,
    RowWiseMethod,
    TrainedMethod,
)
from unalike.methods.dir_gnn import DirGNN
from unalike.methods.fsgnn import FSGNN
from unalike.methods.gat import GAT, GATJK
from unalike.methods.gcn import GCN, GCNJK
from unalike.methods.gcnii import GCNII
from unalike.methods.glognn import GloGNN
from unalike.methods.gpr_gnn import GPRGNN
from unalike.methods.h2gcn import H2GCN
from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.mixhop import MixHop
from unalike.methods.mlp import MLP
from unalike.methods.poly import Poly
from unalike.methods.polynormer import Polynormer
from unalike.methods.sage import SAGE
from unalike.methods.sgc import SGC
from unalike.options import options_of
from unalike.training.state import Training

TRAINED_METHODS: dict[str, type[TrainedMethod]] = {
    "mlp": MLP,
    "link": LINK,
    "sgc": SGC,
    "gcn": GCN,
    "gat": GAT,
    "gcn-jk": GCNJK,
    "gat-jk": GATJK,
    "appnp": APPNP,
    "h2gcn": H2GCN,
    "mixhop": MixHop,
    "gpr-gnn": GPRGNN,
    "gcnii": GCNII,
    "link-concat": LINKConcat,
    "linkx": LINKX,
    "sage": SAGE,
    "dir-gnn": DirGNN,
    "fsgnn": FSGNN,
    "a2dug": A2DUG,
    "poly": Poly,
    "acm-gcn": ACMGCN,
    "glognn": GloGNN,
    "polynormer": Polynormer,
}

Factory = Callable[..., nn.Module]

GROUP = "unalike.methods"
"""Group of entry points by which other packages add methods."""

FROM_GRAPH: dict[str, Callable[[Graph], Any]] = {
    "graph": lambda graph: graph,
    **dict.fromkeys(
        ("in_channels", "num_features", "in_features", "in_dim"),
        lambda graph: graph.num_features,
    ),
    **dict.fromkeys(
        ("out_channels", "num_classes", "out_features", "out_dim"),
        lambda graph: graph.num_classes,
    ),
    "num_nodes": lambda graph: graph.num_nodes,
}
"""Arguments of a factory or constructor that come from the graph, by name."""

RESERVED = {"training", "batching", *options_of(Training())}
"""Options that every trained method has."""


def method(
    name: str,
    factory: Factory | None = None,
    *,
    row_wise: bool = False,
    paper: str = "",
) -> Any:
    """Register an `nn.Module` class, or a function that returns a module, as a method.

    Arguments of the constructor are filled by name: `in_channels`, `out_channels` and
    the others of `FROM_GRAPH`. Parameters whose default is a number or string are the
    hyperparameters. A function with one other parameter gets the graph. With
    `row_wise` the logits of a node depend on its own row alone. Without a factory this
    is a class decorator.
    """
    if factory is None:

        def decorate(decorated: Factory) -> Factory:
            method(name, decorated, row_wise=row_wise, paper=paper)
            return decorated

        return decorate
    base = RowWiseMethod if row_wise else MessagePassingMethod
    arguments, hyperparameters = _parameters(name, factory)

    def build_module(self: Any, graph: Graph) -> nn.Module:
        from_graph = {name: FROM_GRAPH[key](graph) for name, key in arguments.items()}
        options = {option: getattr(self, option) for option in hyperparameters}
        module = factory(**from_graph, **options)
        if not isinstance(module, nn.Module):
            raise UserError(f"{name} builds a {type(module).__name__}, no nn.Module.")
        return module

    kind = make_dataclass(
        name,
        [
            (option, type(value), field(default=value))
            for option, value in hyperparameters.items()
        ],
        bases=(base,),
        namespace={
            "build_module": build_module,
            "paper": paper,
            # A module may use edges alone.
            "needs_features": False,
            "__doc__": factory.__doc__ or f"{name}, a registered nn.Module.",
            "__module__": __name__,
        },
        frozen=True,
        kw_only=True,
    )
    return register(name, kind)


def _parameters(name: str, factory: Factory) -> tuple[dict[str, str], dict[str, Any]]:
    """Parameters with their key in `FROM_GRAPH`, and hyperparameters with defaults."""
    parameters = [
        p
        for p in signature(factory).parameters.values()
        if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    arguments = {p.name: p.name for p in parameters if p.name in FROM_GRAPH}
    others = [p for p in parameters if p.name not in FROM_GRAPH]
    unknown = [p.name for p in others if p.default is Parameter.empty]
    if not arguments and len(unknown) == 1 and not isclass(factory):
        arguments[unknown.pop()] = "graph"
    if unknown:
        raise UserError(
            f"{name} needs '{unknown[0]}', which has no default and is not one of "
            f"{', '.join(FROM_GRAPH)}."
        )
    simple = bool | int | float | str
    hyperparameters = {
        p.name: p.default for p in others if isinstance(p.default, simple)
    }
    if clash := sorted(RESERVED & hyperparameters.keys()):
        raise UserError(
            f"{name} has the parameter '{clash[0]}', which is an option of training; "
            "give it another name."
        )
    return arguments, hyperparameters


def register(name: str, kind: type[Method]) -> type[Method]:
    """Add a method to `METHODS` under a new name, or replace one of the same module."""
    from unalike.methods import METHODS

    if name in METHODS and METHODS[name].__module__ != kind.__module__:
        raise UserError(f"There is a method {name} already; choose another name.")
    METHODS[name] = kind
    if issubclass(kind, TrainedMethod):
        TRAINED_METHODS[name] = kind
    return kind


def load_entry_points() -> None:
    """Register the methods of installed packages; one that fails is left out."""
    for entry in entry_points(group=GROUP):
        try:
            loaded = entry.load()
            if isclass(loaded) and issubclass(loaded, Method):
                register(entry.name, loaded)
            else:
                method(entry.name, loaded)
        except Exception as error:
            warnings.warn(
                f"The method {entry.name} of {entry.value} is left out: {error}",
                stacklevel=2,
            )
