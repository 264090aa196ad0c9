"""Any `nn.Module` as a method: arguments of `forward` by name, trial under vmap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from math import prod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.device import fork_rng
from unalike.errors import UserError, first_line
from unalike.nn.linear import Dropout
from unalike.training.stack import Stack

MAX_DENSE_NUMEL = 2**32
"""Sparse features with more elements than this are not made dense."""
SAMPLE_NODES = 256
"""Nodes of the sample of the graph on which a module is tried."""


def dense_features(graph: Graph) -> Float[Tensor, "nodes features"]:
    """Features as a float32 tensor; the dense copy of sparse ones is cached."""
    x = graph.features
    if not isinstance(x, Adjacency):
        return x.float()
    if prod(x.shape) > MAX_DENSE_NUMEL:
        raise UserError(
            f"Sparse features of {x.shape[0]} x {x.shape[1]} are too large for a dense "
            "x; multiply them by SparseLinear in a forward(batch)."
        )
    if "dense" not in x.cache:
        x.cache["dense"] = x.to_dense().to(x.indices.device)
    return x.cache["dense"]


def edge_index(graph: Graph) -> Int[Tensor, "2 edges"]:
    """Sources and targets of all edges, as in PyTorch Geometric."""
    adjacency = graph.adjacency
    if "edge_index" not in adjacency.cache:
        adjacency.cache["edge_index"] = adjacency.edge_index
    return adjacency.cache["edge_index"]


WHOLE_BATCH = ("batch", "graph", "data")
ARGUMENTS: dict[str, Callable[[Graph], Any]] = {
    **dict.fromkeys(WHOLE_BATCH, lambda graph: graph),
    "x": dense_features,
    "features": lambda graph: graph.features,
    "adjacency": lambda graph: graph.adjacency,
    "adj": lambda graph: graph.adjacency,
    "edge_index": edge_index,
    "edge_weight": lambda graph: graph.adjacency.values,
}
"""Arguments of `forward` by name."""


class PlainModule(nn.Module):
    """A module whose `forward` gets parts of a batch by the names of its parameters."""

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module = module
        self.names = names

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        return self.module(**{name: ARGUMENTS[name](batch) for name in self.names})


def for_batches(module: nn.Module) -> nn.Module:
    """A module with a `forward` that takes a batch, and dropout rates as buffers."""
    names = argument_names(module)
    if any(isinstance(p, UninitializedParameter) for p in module.parameters()):
        raise UserError(
            f"{type(module).__name__} has layers of unknown size; give them "
            "graph.num_features in place of -1."
        )
    replace_dropout(module)
    takes_batch = len(names) == 1 and names[0] in WHOLE_BATCH
    return module if takes_batch else PlainModule(module, names)


def argument_names(module: nn.Module) -> list[str]:
    """The parameters of `forward` in `ARGUMENTS`; others must have a default."""
    parameters = signature(module.forward).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for parameter in named:
        if parameter.name not in ARGUMENTS and parameter.default is Parameter.empty:
            raise UserError(
                f"{type(module).__name__}.forward takes '{parameter.name}', which "
                f"is not one of {', '.join(ARGUMENTS)}."
            )
    return [p.name for p in named if p.name in ARGUMENTS]


def replace_dropout(module: nn.Module) -> None:
    """Replace `nn.Dropout` by a dropout whose rate may differ between runs."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                parent.add_module(name, Dropout(child.p).train(child.training))


@dataclass(frozen=True)
class Allowed:
    """What the training loop may do with a module."""

    constants: Mapping[Any, Hashable]
    """Attributes of each method's module that must be equal in a stack."""
    stackable: bool = True
    """Can its runs train in one stack under vmap?"""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""
    notes: tuple[str, ...] = ()
    """Restrictions to show to the user."""


@dataclass(frozen=True)
class Trial:
    """Tries a module on a sample of the graph before it is trained."""

    graph: Graph
    device: torch.device
    bf16: bool
    row_wise: bool
    name: str
    """The name of the method."""

    def allowed(
        self, builders: Mapping[Any, Callable[[Graph], nn.Module]], runs: int
    ) -> Allowed:
        """What the training loop may do with the modules of these builders."""
        build = next(iter(builders.values()))
        with fork_rng(self.device):
            constants = {
                key: constants_of(one(self.graph)) if len(builders) > 1 else ()
                for key, one in builders.items()
            }
            graph = self.sample(build)
            reason = self.why_not_stackable(build, graph) if runs > 1 else ""
            waits = self.device.type == "cuda" and self.waits_for_host(build, graph)
        notes = []
        if reason:
            notes.append(f"{self.name} trains run by run: {reason}")
        if waits:
            notes.append(f"{self.name} waits for the host: no CUDA graph")
        return Allowed(constants, not reason, not waits, tuple(notes))

    def sample(self, build: Callable[[Graph], nn.Module]) -> Graph:
        """A sample of the graph, or all of it if the module fails on the sample."""
        ids = torch.arange(min(SAMPLE_NODES, self.graph.num_nodes))
        graph = self.graph
        part = graph.select_rows(ids) if self.row_wise else graph.subgraph(ids)
        part = part.to(self.device)
        try:
            self.logits(build, part, [0])
        except UserError:
            raise
        except Exception:
            part = graph.to(self.device)
            self.logits(build, part, [0])
        return part

    def why_not_stackable(
        self, build: Callable[[Graph], nn.Module], graph: Graph
    ) -> str:
        """Why the logits of two runs differ under vmap; empty if they do not."""
        alone = [self.logits(build, graph, [seed]) for seed in (0, 1)]
        try:
            both = self.logits(build, graph, [0, 1])
        except Exception as error:
            return f"{type(error).__name__} under vmap, {first_line(error)}"
        same = torch.allclose(both, torch.cat(alone), rtol=1e-2, atol=1e-3)
        return "" if same else "other logits under vmap"

    def waits_for_host(self, build: Callable[[Graph], nn.Module], graph: Graph) -> bool:
        """Does a step wait for the GPU, which a CUDA graph cannot capture?"""
        stack = self.stack(build, [0])
        self.step(stack, graph)
        before = torch.cuda.get_sync_debug_mode()
        try:
            with warnings.catch_warnings():
                # Torch warns that this mode is a prototype.
                warnings.simplefilter("ignore")
                torch.cuda.set_sync_debug_mode("error")
            self.step(stack, graph)
        except RuntimeError:
            return True
        finally:
            torch.cuda.set_sync_debug_mode(before)
        return False

    def logits(
        self, build: Callable[[Graph], nn.Module], graph: Graph, seeds: list[int]
    ) -> Float[Tensor, "runs nodes classes"]:
        """Logits of new runs, after a step in training that changes no parameter."""
        stack = self.stack(build, seeds)
        with torch.no_grad():
            products, params = stack.sparse_products(graph), stack.params.weight[0]
            logits = stack.forward(
                graph, products, params, stack.buffers, training=False
            )
        expected = (len(seeds), graph.num_nodes, graph.num_classes)
        if tuple(logits.shape) != expected:
            raise UserError(
                f"The module of {self.name} returns a tensor {list(logits.shape[1:])}; "
                f"logits are [nodes, classes], {list(expected[1:])} here."
            )
        self.step(stack, graph)
        return logits

    def step(self, stack: Stack, graph: Graph) -> None:
        """A forward and a backward pass in training."""
        products = stack.sparse_products(graph)
        params = stack.params.weight[0].detach().requires_grad_()
        logits = stack.forward(graph, products, params, stack.buffers, training=True)
        torch.autograd.grad(logits.square().mean(), params, materialize_grads=True)

    def stack(self, build: Callable[[Graph], nn.Module], seeds: list[int]) -> Stack:
        modules = []
        for seed in seeds:
            torch.manual_seed(seed)
            modules.append(build(self.graph))
        return Stack.build(
            modules, device=self.device, bf16=self.bf16, row_wise=self.row_wise
        )


def is_foreign(module: nn.Module) -> bool:
    """Is the class of a module defined outside unalike?"""
    package = type(module).__module__.partition(".")[0]
    return isinstance(module, PlainModule) or package != "unalike"


def constants_of(module: nn.Module) -> Hashable:
    """The numbers and strings among the attributes of a module and its submodules.

    Under vmap all runs read those of the first, so they must be equal.
    """
    return tuple(
        (name, attribute, value)
        for name, submodule in module.named_modules()
        for attribute, value in vars(submodule).items()
        if isinstance(value, bool | int | float | str) and attribute != "training"
    )
