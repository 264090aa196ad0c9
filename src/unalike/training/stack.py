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
from unalike.nn.optim import AdamW, AdamWState, SparseOptimizer, WeightState
from unalike.nn.sparse import padding_to_multiple
from unalike.nn.sparse_linear import (
    Products,
    Source,
    as_buffers,
    forward_with,
    sparse_layers,
)
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
    network: nn.Module, graph: Graph, device: torch.device, *, row_wise: bool
) -> int:
    """The size of a stack that keeps the device busy and fits into its memory."""
    if device.type == "cuda":
        room = CUDA_SHARE * free_memory(device)
        needed = memory_per_run(network, graph, row_wise=row_wise)
        return max(1, int(room / needed))
    layers = sparse_layers(network).values()
    matrices = [getattr(graph, layer.source) for layer in layers]
    if not row_wise:
        matrices.append(graph.adjacency)
    entries = sum(matrix.nnz for matrix in matrices)
    work = sparse_numel(network) + entries * activation_width(
        network, row_wise=row_wise
    )
    return max(1, MAX_CPU_WORK // max(1, work))


def memory_per_run(network: nn.Module, graph: Graph, *, row_wise: bool) -> int:
    """The memory that one more run of a stack needs, about."""
    width = max(activation_width(network, row_wise=row_wise), 1)
    activations = graph.num_nodes * width * ACTIVATION_COPIES
    return 4 * (sparse_numel(network) * WEIGHT_COPIES + activations)


def sparse_numel(network: nn.Module) -> int:
    """Numbers in the weights of `SparseLinear` layers."""
    return sum(layer.weight.numel() for layer in sparse_layers(network).values())


def activation_width(network: nn.Module, *, row_wise: bool) -> int:
    """Activations per node."""
    width = sum(layer.out_features for layer in sparse_layers(network).values())
    if row_wise and width:
        return width
    return width + hidden_width(network)


def hidden_width(network: nn.Module) -> int:
    """Activations per node behind the input.

    By the size of biases and norms, or of weights where layers have no bias.
    """
    sparse = {id(layer.weight) for layer in sparse_layers(network).values()}
    own = [p for p in network.parameters() if id(p) not in sparse]
    vectors = sum(p.numel() for p in own if p.dim() == 1)
    return max(vectors, sum(min(p.shape) for p in own if p.dim() == 2))


# Many runs in one set of tensors: modules of equal shape, run under vmap.


Stacked = dict[str, Float[Tensor, "nodes runs hidden"]]
"""The products of `SparseLinear` layers of all runs, by the name of the layer."""


class RowShard(NamedTuple):
    """The rows of a sparse weight that are here, and how many there are in all."""

    held: range
    of: int


RowShards = dict[str, RowShard]
"""The rows of sharded weights that are here, by name of the layer."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Modules of equal shape; a sparse weight has the runs side by side in each row.

    All other parameters of a run lie in one row of `rest`, so that an optimizer step
    is a few operations whatever their number. Each is padded to an aligned size.
    """

    module: nn.Module
    sparse_weights: dict[str, SparseOptimizer]
    """The weights of `SparseLinear` layers, by the name of the layer."""
    sources: dict[str, Source]
    """The input of each of these layers."""
    params: AdamWState
    param_shapes: dict[str, torch.Size]
    world: World
    sharded: RowShards
    """What is here of sparse weights that are sharded over the processes."""
    bf16: bool
    """Is all but the weights in bfloat16?"""
    bias_slices: dict[str, slice]
    """Where the biases of `SparseLinear` layers lie in `rest`."""
    buffers: dict[str, Shaped[Tensor, "runs ..."]]
    constants: dict[str, Shaped[Tensor, "runs ..."]]
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
        mover: type[SparseOptimizer] = AdamW,
        world: World | None = None,
        divided: RowShards | None = None,
    ) -> Stack:
        """Stack modules; they give up the weights of their sparse layers."""
        layers = [sparse_layers(network) for network in networks]
        tables = {
            name: stack_runs([own[name].weight.detach() for own in layers])
            for name in layers[0]
        }
        for layer in (layer for own in layers for layer in own.values()):
            layer.register_parameter("weight", None)
        rows = [flatten_parameters(n.parameters()) for n in networks]
        buffers = {
            name: torch.stack([n.get_buffer(name) for n in networks]).to(device)
            for name, _ in networks[0].named_buffers()
        }
        moving = networks[0].state_dict().keys() & buffers.keys()
        shapes = {name: p.shape for name, p in networks[0].named_parameters()}
        return cls(
            module=networks[0].to("meta"),
            sparse_weights={
                name: mover.create(table.to(device), half=half)
                for name, table in tables.items()
            },
            sources={name: layer.source for name, layer in layers[0].items()},
            params=AdamWState.create(torch.stack(rows)[None].to(device), half=False),
            param_shapes=shapes,
            world=world or World(),
            sharded=divided or {},
            bf16=half,
            bias_slices=bias_slices(shapes, layers[0]),
            buffers={name: b for name, b in buffers.items() if name in moving},
            constants={name: b for name, b in buffers.items() if name not in moving},
            row_wise=row_wise,
            only_products=only_products,
        )

    @property
    def num_runs(self) -> int:
        return self.params.weight.shape[1]

    def sparse_products(
        self, batch: Graph, *, best: bool = False, out: Stacked | None = None
    ) -> Stacked:
        """The outputs of `SparseLinear` layers, written to `out` if given."""
        rest = self.params.best_weight if best else self.params.weight
        return {
            name: sparse_product(
                matrix,
                self.sparse_weights[name],
                rest[0, :, self.bias_slices[name]]
                if name in self.bias_slices
                else None,
                best=best,
                out=None if out is None else out[name].flatten(1),
                world=self.world if name in self.sharded else World(),
            )
            for name, matrix in self.inputs(batch).items()
        }

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse input of each `SparseLinear` layer."""
        return {name: getattr(batch, source) for name, source in self.sources.items()}

    def sparse_weight(self, source: Source) -> SparseOptimizer:
        """The weight of the first layer that reads this input."""
        names = [name for name, own in self.sources.items() if own == source]
        return self.sparse_weights[names[0]]

    def gather_weight(self, name: str, run: int) -> Float[Tensor, "rows hidden"]:
        """The best sparse weight of a run, gathered where processes shard its rows."""
        own = self.sparse_weights[name].best_weight[:, run]
        if name not in self.sharded:
            return own
        return torch.cat(self.world.all_gather_object(own.cpu()))

    def forward(
        self,
        batch: Graph,
        first: Stacked,
        rest: Float[Tensor, "runs parameters"],
        buffers: dict[str, Tensor],
        *,
        training: bool,
    ) -> Float[Tensor, "runs nodes classes"]:
        """The logits of all runs; training updates the buffers."""
        self.module.train(training)

        def one(row: Tensor, buffers: dict[str, Tensor], first: Products) -> Tensor:
            state = {**self.parameters(row), **buffers, **as_buffers(first)}
            logits: Tensor = functional_call(self.module, state, (batch,))
            return logits

        many = vmap(one, (0, 0, dict.fromkeys(first, 1)), randomness="different")
        stacked = without_vmap(one) if self.num_runs == 1 else many
        with torch.autocast(rest.device.type, torch.bfloat16, enabled=self.bf16):
            return stacked(rest, {**buffers, **self.constants}, first).float()

    def parameters(self, row: Float[Tensor, " parameters"]) -> dict[str, Tensor]:
        """The parameters of a run by name, in the same memory."""
        numbers = [shape.numel() for shape in self.param_shapes.values()]
        sizes = [
            size for count in numbers for size in (count, padding_to_multiple(count))
        ]
        pieces = zip(self.param_shapes.items(), row.split(sizes)[::2], strict=True)
        return {name: piece.view(shape) for (name, shape), piece in pieces}


Forward = Callable[[Tensor, dict[str, Tensor], Products], Tensor]
"""Logits from parameters, buffers and products, of one run or of many."""


def without_vmap(one: Forward) -> Forward:
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
    batch = graph.select_rows(torch.zeros(3, dtype=torch.int64))
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


def sparse_product(
    matrix: Adjacency,
    weights: WeightState,
    offset: Float[Tensor, "runs hidden"] | None,
    *,
    best: bool,
    out: Float[Tensor, "nodes columns"] | None,
    world: World,
) -> Float[Tensor, "nodes runs hidden"]:
    """The product of a sparse input and a stacked weight, plus the biases of runs."""
    table = weights.best_weight if best else weights.read_weight
    added = None if offset is None else offset.flatten()
    product = column_parallel_spmm(world, matrix, table.flatten(1), added, out)
    return product.unflatten(1, table.shape[1:])


def stack_runs(
    tables: list[Float[Tensor, "rows hidden"]],
) -> Float[Tensor, "rows runs hidden"]:
    """The weights of all runs as one; that of a single run is not copied."""
    return torch.stack(tables, 1) if len(tables) > 1 else tables[0][:, None]


def flatten_parameters(
    parameters: Iterable[Float[Tensor, ...]],
) -> Float[Tensor, " parameters"]:
    """Parameters concatenated, each padded to an aligned size."""
    rows = [p.detach().flatten() for p in parameters]
    padded = [F.pad(row, (0, padding_to_multiple(row.numel()))) for row in rows]
    return torch.cat([torch.empty(0), *padded])


def bias_slices(
    shapes: dict[str, torch.Size], layers: Iterable[str]
) -> dict[str, slice]:
    """Where the biases of `SparseLinear` layers lie among the parameters of a run."""
    owners, slices, begin = {f"{name}.bias": name for name in layers}, {}, 0
    for name, shape in shapes.items():
        if name in owners:
            slices[owners[name]] = slice(begin, begin + shape.numel())
        begin += shape.numel() + padding_to_multiple(shape.numel())
    return slices
