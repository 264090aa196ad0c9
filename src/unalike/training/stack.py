"""Many runs in one set of tensors: modules of equal shape, run under vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.kernels.matrix_units import room_behind
from unalike.kernels.update import Held, Weights
from unalike.training.joint import joint_product
from unalike.training.sparse_linear import (
    Products,
    Source,
    as_buffers,
    forward_with,
    sparse_layers,
)
from unalike.training.tables import Exact, Table
from unalike.training.world import World

Stacked = dict[str, Float[Tensor, "nodes runs hidden"]]
"""The products of `SparseLinear` layers of all runs, by the name of the layer."""


class Share(NamedTuple):
    """The rows of a sparse weight that are here, and how many there are in all."""

    held: range
    of: int


Shares = dict[str, Share]
"""The rows of sharded weights that are here, by name of the layer."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Modules of equal shape; a sparse weight has the runs side by side in each row.

    All other parameters of a run lie in one row of `rest`, so that an optimizer step
    is a few operations whatever their number. Each is padded to an aligned size.
    """

    template: nn.Module
    tables: dict[str, Table]
    """The weights of `SparseLinear` layers, by the name of the layer."""
    sources: dict[str, Source]
    """The input of each of these layers."""
    rest: Weights
    shapes: dict[str, torch.Size]
    world: World
    divided: Shares
    """What is here of sparse weights that are sharded over the processes."""
    half: bool
    """Is all but the weights in bfloat16?"""
    spans: dict[str, slice]
    """Where the biases of `SparseLinear` layers lie in `rest`."""
    buffers: dict[str, Shaped[Tensor, "runs ..."]]
    fixed: dict[str, Shaped[Tensor, "runs ..."]]
    """Buffers that training does not change."""
    row_wise: bool
    """Do the logits of a node depend on its own row alone in evaluation?"""
    only_products: bool
    """Do they depend on nothing but the products of `SparseLinear` layers?"""

    @classmethod
    def build(
        cls,
        networks: Sequence[nn.Module],
        *,
        device: torch.device,
        half: bool,
        row_wise: bool = False,
        only_products: bool = False,
        mover: type[Table] = Exact,
        world: World | None = None,
        divided: Shares | None = None,
    ) -> Stack:
        """Stack modules; they give up the weights of their sparse layers."""
        layers = [sparse_layers(network) for network in networks]
        tables = {
            name: side_by_side([own[name].weight.detach() for own in layers])
            for name in layers[0]
        }
        for layer in (layer for own in layers for layer in own.values()):
            layer.register_parameter("weight", None)
        rows = [in_a_row(n.parameters()) for n in networks]
        buffers = {
            name: torch.stack([n.get_buffer(name) for n in networks]).to(device)
            for name, _ in networks[0].named_buffers()
        }
        moving = networks[0].state_dict().keys() & buffers.keys()
        shapes = {name: p.shape for name, p in networks[0].named_parameters()}
        return cls(
            template=networks[0].to("meta"),
            tables={
                name: mover.fresh(table.to(device), half=half)
                for name, table in tables.items()
            },
            sources={name: layer.source for name, layer in layers[0].items()},
            rest=Weights.fresh(torch.stack(rows)[None].to(device), half=False),
            shapes=shapes,
            world=world or World(),
            divided=divided or {},
            half=half,
            spans=bias_slices(shapes, layers[0]),
            buffers={name: b for name, b in buffers.items() if name in moving},
            fixed={name: b for name, b in buffers.items() if name not in moving},
            row_wise=row_wise,
            only_products=only_products,
        )

    @property
    def num_runs(self) -> int:
        return self.rest.now.shape[1]

    def products(
        self, batch: Graph, *, best: bool = False, out: Stacked | None = None
    ) -> Stacked:
        """The outputs of `SparseLinear` layers, written to `out` if given."""
        rest = self.rest.best if best else self.rest.now
        return {
            name: multiply(
                matrix,
                self.tables[name],
                rest[0, :, self.spans[name]] if name in self.spans else None,
                best=best,
                out=None if out is None else out[name].flatten(1),
                world=self.world if name in self.divided else World(),
            )
            for name, matrix in self.inputs(batch).items()
        }

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse input of each `SparseLinear` layer."""
        return {name: getattr(batch, source) for name, source in self.sources.items()}

    def sparse_weight(self, source: Source) -> Table:
        """The weight of the first layer that reads this input."""
        names = [name for name, own in self.sources.items() if own == source]
        return self.tables[names[0]]

    def whole_table(self, name: str, run: int) -> Float[Tensor, "rows hidden"]:
        """The best sparse weight of a run, gathered where processes shard its rows."""
        own = self.tables[name].best[:, run]
        if name not in self.divided:
            return own
        return torch.cat(self.world.gather(own.cpu()))

    def scores(
        self,
        batch: Graph,
        first: Stacked,
        rest: Float[Tensor, "runs parameters"],
        buffers: dict[str, Tensor],
        *,
        training: bool,
    ) -> Float[Tensor, "runs nodes classes"]:
        """The logits of all runs; training updates the buffers."""
        self.template.train(training)

        def one(row: Tensor, buffers: dict[str, Tensor], first: Products) -> Tensor:
            state = {**self.parameters(row), **buffers, **as_buffers(first)}
            logits: Tensor = functional_call(self.template, state, (batch,))
            return logits

        many = vmap(one, (0, 0, dict.fromkeys(first, 1)), randomness="different")
        stacked = alone(one) if self.num_runs == 1 else many
        with torch.autocast(rest.device.type, torch.bfloat16, enabled=self.half):
            return stacked(rest, {**buffers, **self.fixed}, first).float()

    def parameters(self, row: Float[Tensor, " parameters"]) -> dict[str, Tensor]:
        """The parameters of a run by name, in the same memory."""
        numbers = [shape.numel() for shape in self.shapes.values()]
        sizes = [size for count in numbers for size in (count, room_behind(count))]
        pieces = zip(self.shapes.items(), row.split(sizes)[::2], strict=True)
        return {name: piece.view(shape) for (name, shape), piece in pieces}


Forward = Callable[[Tensor, dict[str, Tensor], Products], Tensor]
"""Logits from parameters, buffers and products, of one run or of many."""


def alone(one: Forward) -> Forward:
    """The forward pass of a stack of one run, without vmap."""

    def stacked(rest: Tensor, buffers: dict[str, Tensor], first: Products) -> Tensor:
        own = {name: buffer[0] for name, buffer in buffers.items()}
        return one(rest[0], own, {name: x[:, 0] for name, x in first.items()})[None]

    return stacked


def reads_only_products(network: nn.Module, graph: Graph) -> bool:
    """Are the products of its `SparseLinear` layers all that a module reads of rows?

    If so, the runs of a stack can be evaluated on different nodes at the same time.
    The module gets products of two rows with a batch of three.
    """
    layers = sparse_layers(network)
    if not layers or not graph.num_nodes:
        return False
    products = {
        name: torch.zeros(2, layer.out_features) for name, layer in layers.items()
    }
    batch = graph.rows(torch.zeros(3, dtype=torch.int64))
    training = network.training
    try:
        with torch.no_grad():
            logits = forward_with(network.eval(), batch, products)
    except Exception:
        # A module that reads more meets rows of different number.
        return False
    finally:
        network.train(training)
    return len(logits) == 2


def multiply(
    matrix: Adjacency,
    weights: Held,
    offset: Float[Tensor, "runs hidden"] | None,
    *,
    best: bool,
    out: Float[Tensor, "nodes columns"] | None,
    world: World,
) -> Float[Tensor, "nodes runs hidden"]:
    """The product of a sparse input and a stacked weight, plus the biases of runs."""
    table = weights.best if best else weights.to_gather
    added = None if offset is None else offset.flatten()
    product = joint_product(world, matrix, table.flatten(1), added, out)
    return product.unflatten(1, table.shape[1:])


def side_by_side(
    tables: list[Float[Tensor, "rows hidden"]],
) -> Float[Tensor, "rows runs hidden"]:
    """The weights of all runs as one; that of a single run is not copied."""
    return torch.stack(tables, 1) if len(tables) > 1 else tables[0][:, None]


def in_a_row(
    parameters: Iterable[Float[Tensor, ...]],
) -> Float[Tensor, " parameters"]:
    """Parameters concatenated, each padded to an aligned size."""
    rows = [p.detach().flatten() for p in parameters]
    padded = [F.pad(row, (0, room_behind(row.numel()))) for row in rows]
    return torch.cat([torch.empty(0), *padded])


def bias_slices(
    shapes: dict[str, torch.Size], layers: Iterable[str]
) -> dict[str, slice]:
    """Where the biases of `SparseLinear` layers lie among the parameters of a run."""
    owners, slices, begin = {f"{name}.bias": name for name in layers}, {}, 0
    for name, shape in shapes.items():
        if name in owners:
            slices[owners[name]] = slice(begin, begin + shape.numel())
        begin += shape.numel() + room_behind(shape.numel())
    return slices
