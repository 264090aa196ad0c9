"""Many runs in one set of tensors (vmap)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.nn.module import SparseInputModule, SparseProducts
from unalike.nn.optim import AdamW, AdamWState, SparseOptimizer, WeightState
from unalike.nn.sparse import padding_to_multiple
from unalike.system import free_memory
from unalike.training.distributed import World, column_parallel_spmm

# Room: how many runs to train at once.


MAX_CPU_WORK = 2**26
"""Multiplications an epoch past which processor cores gain nothing from a stack."""
CUDA_SHARE = 0.7
"""Share of a card's free memory that a stack may plan to use."""
WEIGHT_COPIES = 6
"""Weights, two moments, the best so far, a gradient, and one copy while stacking."""
ACTIVATION_COPIES = 10
"""Hidden numbers per row and column that a step holds at the same time."""


def max_stacked_runs(
    network: SparseInputModule, graph: Graph, device: torch.device
) -> int:
    """A stack that keeps the device busy and fits into its memory."""
    if device.type == "cuda":
        room = CUDA_SHARE * free_memory(device)
        return max(1, int(room / memory_per_run(network, graph)))
    matrices = list(network.inputs(graph).values())
    if not network.row_wise:
        matrices.append(graph.adjacency)
    entries = sum(matrix.nnz for matrix in matrices)
    work = sparse_numel(network) + entries * activation_width(network)
    return max(1, MAX_CPU_WORK // max(1, work))


def memory_per_run(network: SparseInputModule, graph: Graph) -> int:
    """The memory that one more run of a stack needs, about."""
    activations = (
        graph.num_nodes * max(activation_width(network), 1) * ACTIVATION_COPIES
    )
    return 4 * (sparse_numel(network) * WEIGHT_COPIES + activations)


def sparse_numel(network: SparseInputModule) -> int:
    """Numbers in the tables of a network."""
    return sum(table.numel() for table in network.tables.values())


def activation_width(network: SparseInputModule) -> int:
    """Numbers that a network holds per node."""
    width = sum(table.shape[1] for table in network.tables.values())
    return width if network.row_wise else width + hidden_width(network)


def hidden_width(network: SparseInputModule) -> int:
    """Numbers per node behind the tables, by the vectors that add to or weigh them."""
    return sum(p.numel() for p in network.parameters() if p.dim() == 1)


# Stack: the networks of many runs, side by side in the same tensors.


Stacked = dict[str, Float[Tensor, "nodes runs hidden"]]


class RowShard(NamedTuple):
    """The rows of a table that are here, and how many there are in all."""

    held: range
    of: int


RowShards = dict[str, RowShard]
"""What is here of the rows of tables, by name; of all others everything is."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Networks of equal shape; a table holds the runs side by side in each row.

    All other parameters of a run lie in one row of `rest`, so that a step is a few
    operations whatever their number. Each has a little room behind it.
    """

    template: SparseInputModule
    tables: dict[str, SparseOptimizer]
    rest: AdamWState
    shapes: dict[str, torch.Size]
    world: World
    divided: RowShards
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
        networks: Sequence[SparseInputModule],
        *,
        device: torch.device,
        half: bool,
        mover: type[SparseOptimizer] = AdamW,
        world: World | None = None,
        divided: RowShards | None = None,
    ) -> Stack:
        """Lay networks side by side; they give up their tables."""
        tables = {
            name: stack_runs([n.tables[name].detach() for n in networks])
            for name in networks[0].tables
        }
        for network in networks:
            network.tables = nn.ParameterDict()
        rows = [flatten_parameters(n.parameters()) for n in networks]
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
            rest=AdamWState.fresh(torch.stack(rows)[None].to(device), half=False),
            shapes=shapes,
            world=world or World(),
            divided=divided or {},
            half=half,
            spans=bias_slices(shapes),
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
            name: sparse_product(
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

        def one(
            row: Tensor, buffers: dict[str, Tensor], first: SparseProducts
        ) -> Tensor:
            return functional_call(
                self.template, (self.parameters(row), buffers), (batch, first)
            )

        many = vmap(one, (0, 0, dict.fromkeys(first, 1)), randomness="different")
        stacked = without_vmap(one) if self.num_runs == 1 else many
        with torch.autocast(rest.device.type, torch.bfloat16, enabled=self.half):
            return stacked(rest, {**buffers, **self.fixed}, first).float()

    def parameters(self, row: Float[Tensor, " parameters"]) -> dict[str, Tensor]:
        """The parameters of a run by name, in the same memory."""
        numbers = [shape.numel() for shape in self.shapes.values()]
        sizes = [
            size for count in numbers for size in (count, padding_to_multiple(count))
        ]
        pieces = zip(self.shapes.items(), row.split(sizes)[::2], strict=True)
        return {name: piece.view(shape) for (name, shape), piece in pieces}


Outcome = Callable[[Tensor, dict[str, Tensor], SparseProducts], Tensor]
"""What comes out of parameters, buffers and first layers, of one run or of many."""


def without_vmap(one: Outcome) -> Outcome:
    """The stack of a single run: that run, without the price of a stack."""

    def stacked(rest: Tensor, buffers: dict[str, Tensor], first: Stacked) -> Tensor:
        own = {name: buffer[0] for name, buffer in buffers.items()}
        return one(rest[0], own, {name: x[:, 0] for name, x in first.items()})[None]

    return stacked


def sparse_product(
    matrix: Adjacency,
    weights: WeightState,
    offset: Float[Tensor, "runs hidden"] | None,
    *,
    best: bool,
    out: Float[Tensor, "nodes columns"] | None,
    world: World,
) -> Float[Tensor, "nodes runs hidden"]:
    """The product of sparse rows and a stacked table, with the offsets of the runs."""
    table = weights.best if best else weights.to_gather
    added = None if offset is None else offset.flatten()
    product = column_parallel_spmm(world, matrix, table.flatten(1), added, out)
    return product.unflatten(1, table.shape[1:])


def stack_runs(
    tables: list[Float[Tensor, "rows hidden"]],
) -> Float[Tensor, "rows runs hidden"]:
    """The tables of all runs as one; that of a single run is not copied."""
    return torch.stack(tables, 1) if len(tables) > 1 else tables[0][:, None]


def flatten_parameters(
    parameters: Iterable[Float[Tensor, ...]],
) -> Float[Tensor, " parameters"]:
    """Parameters one after the other, each from an aligned place on."""
    rows = [p.detach().flatten() for p in parameters]
    padded = [F.pad(row, (0, padding_to_multiple(row.numel()))) for row in rows]
    return torch.cat([torch.empty(0), *padded])


def bias_slices(shapes: dict[str, torch.Size]) -> dict[str, slice]:
    """Where the offsets of tables lie among the parameters of a run."""
    spans, begin = {}, 0
    for name, shape in shapes.items():
        owner, _, table = name.partition(".")
        if owner == "offsets":
            spans[table] = slice(begin, begin + shape.numel())
        begin += shape.numel() + padding_to_multiple(shape.numel())
    return spans
