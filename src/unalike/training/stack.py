"""Stack: the networks of many runs, side by side in the same tensors."""

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
from unalike.training.network import First, Network
from unalike.training.tables import Exact, Table
from unalike.training.world import World

Stacked = dict[str, Float[Tensor, "nodes runs hidden"]]


class Share(NamedTuple):
    """The rows of a table that are here, and how many there are in all."""

    held: range
    of: int


Shares = dict[str, Share]
"""What is here of the rows of tables, by name; of all others everything is."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Networks of equal shape; a table holds the runs side by side in each row.

    All other parameters of a run lie in one row of `rest`, so that a step is a few
    operations whatever their number. Each has a little room behind it.
    """

    template: Network
    tables: dict[str, Table]
    rest: Weights
    shapes: dict[str, torch.Size]
    world: World
    divided: Shares
    """What is here of tables that are divided among the processes of the world."""
    half: bool
    """Is all but the weights in bfloat16?"""
    spans: dict[str, slice]
    """Where the offsets of tables lie in `rest`."""
    buffers: dict[str, Shaped[Tensor, "runs ..."]]
    fixed: dict[str, Shaped[Tensor, "runs ..."]]
    """Numbers that no training moves."""

    @classmethod
    def build(
        cls,
        networks: Sequence[Network],
        *,
        device: torch.device,
        half: bool,
        mover: type[Table] = Exact,
        world: World | None = None,
        divided: Shares | None = None,
    ) -> Stack:
        """Lay networks side by side; they give up their tables."""
        tables = {
            name: side_by_side([n.tables[name].detach() for n in networks])
            for name in networks[0].tables
        }
        for network in networks:
            network.tables = nn.ParameterDict()
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
            rest=Weights.fresh(torch.stack(rows)[None].to(device), half=False),
            shapes=shapes,
            world=world or World(),
            divided=divided or {},
            half=half,
            spans=offset_spans(shapes),
            buffers={name: b for name, b in buffers.items() if name in moving},
            fixed={name: b for name, b in buffers.items() if name not in moving},
        )

    @property
    def num_runs(self) -> int:
        return self.rest.now.shape[1]

    def products(
        self, batch: Graph, *, best: bool = False, out: Stacked | None = None
    ) -> Stacked:
        """The first layer of all runs, written to `out` where it is given."""
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
            for name, matrix in self.template.inputs(batch).items()
        }

    def whole_table(self, name: str, run: int) -> Float[Tensor, "rows hidden"]:
        """The best table of a run, put together where processes divide its rows."""
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
        """What follows the first layer, for all runs; training moves the buffers."""
        self.template.train(training)

        def one(row: Tensor, buffers: dict[str, Tensor], first: First) -> Tensor:
            return functional_call(
                self.template, (self.parameters(row), buffers), (batch, first)
            )

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


Outcome = Callable[[Tensor, dict[str, Tensor], First], Tensor]
"""What comes out of parameters, buffers and first layers, of one run or of many."""


def alone(one: Outcome) -> Outcome:
    """The stack of a single run: that run, without the price of a stack."""

    def stacked(rest: Tensor, buffers: dict[str, Tensor], first: Stacked) -> Tensor:
        own = {name: buffer[0] for name, buffer in buffers.items()}
        return one(rest[0], own, {name: x[:, 0] for name, x in first.items()})[None]

    return stacked


def multiply(
    matrix: Adjacency,
    weights: Held,
    offset: Float[Tensor, "runs hidden"] | None,
    *,
    best: bool,
    out: Float[Tensor, "nodes columns"] | None,
    world: World,
) -> Float[Tensor, "nodes runs hidden"]:
    """The product of sparse rows and a stacked table, with the offsets of the runs."""
    table = weights.best if best else weights.to_gather
    added = None if offset is None else offset.flatten()
    product = joint_product(world, matrix, table.flatten(1), added, out)
    return product.unflatten(1, table.shape[1:])


def side_by_side(
    tables: list[Float[Tensor, "rows hidden"]],
) -> Float[Tensor, "rows runs hidden"]:
    """The tables of all runs as one; that of a single run is not copied."""
    return torch.stack(tables, 1) if len(tables) > 1 else tables[0][:, None]


def in_a_row(
    parameters: Iterable[Float[Tensor, ...]],
) -> Float[Tensor, " parameters"]:
    """Parameters one after the other, each from an aligned place on."""
    rows = [p.detach().flatten() for p in parameters]
    padded = [F.pad(row, (0, room_behind(row.numel()))) for row in rows]
    return torch.cat([torch.empty(0), *padded])


def offset_spans(shapes: dict[str, torch.Size]) -> dict[str, slice]:
    """Where the offsets of tables lie among the parameters of a run."""
    spans, begin = {}, 0
    for name, shape in shapes.items():
        owner, _, table = name.partition(".")
        if owner == "offsets":
            spans[table] = slice(begin, begin + shape.numel())
        begin += shape.numel() + room_behind(shape.numel())
    return spans
