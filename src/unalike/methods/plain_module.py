"""Any `nn.Module` as a method: arguments by name, dropout by run, vmap or not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
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
from unalike.errors import UserError
from unalike.nn.dropout import Dropout
from unalike.training.stack import Stack

MAX_DENSE_NUMEL = 2**32
"""Sparse features with more numbers than this are not made dense."""
SAMPLE_NODES = 256
"""Nodes of the graph on which a module is tried."""


def dense_features(graph: Graph) -> Float[Tensor, "nodes features"]:
    """Features as a float32 tensor; of sparse ones the copy is stored with them."""
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
    dense: Tensor = x.cache["dense"]
    return dense


def edge_index(graph: Graph) -> Int[Tensor, "2 edges"]:
    """Sources and targets of all edges, as PyTorch Geometric has them."""
    rows = graph.adjacency
    if "edge_index" not in rows.cache:
        ends = [rows.row_indices, rows.indices.long()]
        rows.cache["edge_index"] = torch.stack(ends)
    stored: Tensor = rows.cache["edge_index"]
    return stored


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
"""What a parameter of `forward` gets, by its name."""


class PlainModule(nn.Module):
    """A module whose `forward` gets parts of a batch by the names of its parameters."""

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module = module
        self.names = names

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        logits: Tensor = self.module(
            **{name: ARGUMENTS[name](batch) for name in self.names}
        )
        return logits


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
    """The parameters of `forward` that are given; others must have a default."""
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
    """Numbers in the attributes of each method's module; a stack has equal ones."""
    stackable: bool = True
    """Do its runs train in one stack under vmap?"""
    capturable: bool = True
    """Can an epoch be captured as a CUDA graph?"""
    notes: tuple[str, ...] = ()
    """What a user should know."""


@dataclass(frozen=True)
class Trial:
    """Where and how a module is going to be trained."""

    graph: Graph
    device: torch.device
    half: bool
    row_wise: bool
    name: str
    """The name of the method."""

    def allowed(
        self, builders: Mapping[Any, Callable[[Graph], nn.Module]], runs: int
    ) -> Allowed:
        """Try a module on a part of the graph."""
        build = next(iter(builders.values()))
        with torch.random.fork_rng():
            constants = {
                key: constants_of(one(self.graph)) if len(builders) > 1 else ()
                for key, one in builders.items()
            }
            graph = self.sample(build)
            refusal = self.refuses_stack(build, graph) if runs > 1 else ""
            waits = self.device.type == "cuda" and self.waits_for_host(build, graph)
        notes = []
        if refusal:
            notes.append(f"{self.name} trains run by run: {refusal}")
        if waits:
            notes.append(f"{self.name} waits for the host: no CUDA graph")
        return Allowed(constants, not refusal, not waits, tuple(notes))

    def sample(self, build: Callable[[Graph], nn.Module]) -> Graph:
        """A part of the graph, or all of it where the module takes nothing less."""
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

    def refuses_stack(self, build: Callable[[Graph], nn.Module], graph: Graph) -> str:
        """Why two runs do not train under vmap as each does alone; empty if they do."""
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
        torch.cuda.set_sync_debug_mode("error")
        try:
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
            found = self.forward(stack, graph, training=False)
        wanted = (len(seeds), graph.num_nodes, graph.num_classes)
        if tuple(found.shape) != wanted:
            raise UserError(
                f"The module of {self.name} returns {list(found.shape[1:])} numbers; "
                f"logits are [nodes, classes], {list(wanted[1:])} here."
            )
        self.step(stack, graph)
        return found

    def step(self, stack: Stack, graph: Graph) -> None:
        """A forward and a backward pass in training."""
        rest = stack.params.weight[0].detach().requires_grad_()
        logits = self.forward(stack, graph, training=True, rest=rest)
        torch.autograd.grad(logits.square().mean(), rest, materialize_grads=True)

    def forward(
        self, stack: Stack, graph: Graph, *, training: bool, rest: Tensor | None = None
    ) -> Float[Tensor, "runs nodes classes"]:
        """The logits of a stack."""
        rest = stack.params.weight[0] if rest is None else rest
        products = stack.sparse_products(graph)
        return stack.forward(graph, products, rest, stack.buffers, training=training)

    def stack(self, build: Callable[[Graph], nn.Module], seeds: list[int]) -> Stack:
        """A stack of untrained modules."""
        networks = []
        for seed in seeds:
            torch.manual_seed(seed)
            networks.append(build(self.graph))
        return Stack.build(
            networks, device=self.device, half=self.half, row_wise=self.row_wise
        )


def is_foreign(module: nn.Module) -> bool:
    """Does a module come from elsewhere than unalike?"""
    package = type(module).__module__.partition(".")[0]
    return isinstance(module, PlainModule) or package != "unalike"


def constants_of(module: nn.Module) -> Hashable:
    """The numbers and texts among the attributes of a module and its parts.

    Under vmap all runs read those of the first, so that they must be equal.
    """
    return tuple(_constants(module))


def _constants(module: nn.Module) -> Iterator[tuple[str, str, Hashable]]:
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            simple = isinstance(value, bool | int | float | str)
            if simple and attribute != "training":
                yield name, attribute, value


def first_line(error: Exception) -> str:
    """The beginning of an error message."""
    lines = str(error).strip().splitlines()
    return lines[0][:120] if lines else "without a message"
