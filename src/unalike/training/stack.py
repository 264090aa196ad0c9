"""Stack of runs: modules of equal shape trained as one under vmap; how many fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.nn.optim import AdamW, AdamWState, SparseOptimizer
from unalike.nn.sparse import padding_to_multiple
from unalike.nn.sparse_linear import (
    Products,
    Source,
    as_buffers,
    sparse_layers,
)
from unalike.system import free_memory
from unalike.training.distributed import World, column_parallel_spmm

# How many runs fit a stack.


MAX_CPU_WORK = 2**26
"""Multiplications per epoch above which a stack is not faster on a CPU."""
MEMORY_SHARE = 0.7
"""Fraction of free memory that a stack is planned to use."""
WEIGHT_COPIES = 6
"""Weight, two moments, best weight, gradient, and one copy while stacking."""
ACTIVATION_COPIES = 10
"""Activations per node and hidden unit that a step has in memory at the same time."""


def max_stacked_runs(
    module: nn.Module, graph: Graph, device: torch.device, *, row_wise: bool
) -> int:
    """The number of runs that keeps the device busy and fits into its memory."""
    needed = memory_per_run(module, graph, row_wise=row_wise)
    fitting = int(MEMORY_SHARE * free_memory(device) / needed)
    if device.type == "cuda":
        return max(1, fitting)
    matrices = [getattr(graph, own.source) for own in sparse_layers(module).values()]
    if not row_wise:
        matrices.append(graph.adjacency)
    nnz = sum(matrix.nnz for matrix in matrices)
    numel = sum(layer.weight.numel() for layer in sparse_layers(module).values())
    work = numel + nnz * activation_width(module, row_wise=row_wise)
    return max(1, min(fitting, MAX_CPU_WORK // max(1, work)))


def memory_per_run(module: nn.Module, graph: Graph, *, row_wise: bool) -> int:
    """An estimate of the bytes that one more run of a stack needs."""
    width = max(activation_width(module, row_wise=row_wise), 1)
    activations = graph.num_nodes * width * ACTIVATION_COPIES
    weights = sum(weight.numel() for weight in module.parameters())
    return 4 * (weights * WEIGHT_COPIES + activations)


def activation_width(module: nn.Module, *, row_wise: bool) -> int:
    """Activations per node."""
    width = sum(layer.out_features for layer in sparse_layers(module).values())
    return width if row_wise and width else width + hidden_width(module)


def hidden_width(module: nn.Module) -> int:
    """Activations per node behind the input layers, by sizes of biases or weights."""
    sparse = {id(layer.weight) for layer in sparse_layers(module).values()}
    dense = [p for p in module.parameters() if id(p) not in sparse]
    vectors = sum(p.numel() for p in dense if p.dim() == 1)
    return max(vectors, sum(min(p.shape) for p in dense if p.dim() == 2))


# The stack.


StackedProducts = dict[str, Float[Tensor, "nodes runs hidden"]]
"""The products of `SparseLinear` layers of all runs, by the name of the layer."""


class RowShard(NamedTuple):
    """The rows of a sharded weight that this process has, and the global number."""

    local_rows: range
    num_rows: int


RowShards = dict[str, RowShard]
"""The shards of this process by the name of the layer or tensor."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Modules of equal shape; a sparse weight is [rows, runs, hidden].

    All other parameters of a run are one row of `params`, so that an optimizer step is
    a few operations whatever their number. Each is padded to an aligned size.
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
    """The shards of sparse weights that are divided among processes."""
    bf16: bool
    """Compute everything but the optimizer step in bfloat16."""
    bias_slices: dict[str, slice]
    """Columns of `params` with the bias of each `SparseLinear` layer that has one."""
    buffers: dict[str, Shaped[Tensor, "runs ..."]]
    constants: dict[str, Shaped[Tensor, "runs ..."]]
    """Buffers that training does not change."""
    row_wise: bool
    """Do the logits of a node depend on its own row alone in evaluation?"""

    @classmethod
    def build(
        cls,
        modules: Sequence[nn.Module],
        *,
        device: torch.device,
        bf16: bool,
        row_wise: bool = False,
        sparse_optimizer: type[SparseOptimizer] = AdamW,
        world: World | None = None,
        sharded: RowShards | None = None,
    ) -> Stack:
        """Stack modules; the weights of their sparse layers are taken out of them."""
        layers = [sparse_layers(module) for module in modules]
        weights = {
            name: stack_runs([own[name].weight.detach() for own in layers])
            for name in layers[0]
        }
        for layer in (layer for own in layers for layer in own.values()):
            layer.register_parameter("weight", None)
        params = torch.stack([flatten_parameters(m.parameters()) for m in modules])
        buffers = {
            name: torch.stack([m.get_buffer(name) for m in modules]).to(device)
            for name, _ in modules[0].named_buffers()
        }
        persistent = modules[0].state_dict().keys() & buffers.keys()
        shapes = {name: p.shape for name, p in modules[0].named_parameters()}
        return cls(
            module=modules[0].to("meta"),
            sparse_weights={
                name: sparse_optimizer.create(weight.to(device), bf16=bf16)
                for name, weight in weights.items()
            },
            sources={name: layer.source for name, layer in layers[0].items()},
            params=AdamWState.create(params[None].to(device), bf16=False),
            param_shapes=shapes,
            world=world or World(),
            sharded=sharded or {},
            bf16=bf16,
            bias_slices=bias_slices(shapes, layers[0]),
            buffers={n: b for n, b in buffers.items() if n in persistent},
            constants={n: b for n, b in buffers.items() if n not in persistent},
            row_wise=row_wise,
        )

    @property
    def num_runs(self) -> int:
        return self.params.weight.shape[1]

    def sparse_products(
        self, batch: Graph, *, best: bool = False, out: StackedProducts | None = None
    ) -> StackedProducts:
        """The outputs of `SparseLinear` layers, written to `out` if given."""
        params = self.params.best_weight if best else self.params.weight
        biases = {name: params[0, :, own] for name, own in self.bias_slices.items()}
        products = {}
        for name, matrix in self.inputs(batch).items():
            weights = self.sparse_weights[name]
            weight = weights.best_weight if best else weights.read_weight
            bias = biases[name].flatten() if name in biases else None
            flat_out = None if out is None else out[name].flatten(1)
            world = self.world if name in self.sharded else World()
            flat = column_parallel_spmm(
                world, matrix, weight.flatten(1), bias, flat_out
            )
            products[name] = flat.unflatten(1, weight.shape[1:])
        return products

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse input of each `SparseLinear` layer."""
        return {name: getattr(batch, source) for name, source in self.sources.items()}

    def sparse_weight(self, source: Source) -> SparseOptimizer:
        """The weight of the first layer that reads this input."""
        names = [name for name, own in self.sources.items() if own == source]
        return self.sparse_weights[names[0]]

    def gather_weight(self, name: str, run: int) -> Float[Tensor, "rows hidden"]:
        """The best sparse weight of a run, gathered from all processes if sharded."""
        own = self.sparse_weights[name].best_weight[:, run]
        if name not in self.sharded:
            return own
        return torch.cat(self.world.all_gather_object(own.cpu()))

    def forward(
        self,
        batch: Graph,
        products: StackedProducts,
        params: Float[Tensor, "runs parameters"],
        buffers: dict[str, Tensor],
        *,
        training: bool,
    ) -> Float[Tensor, "runs nodes classes"]:
        """The logits of all runs; training updates the buffers."""
        self.module.train(training)

        def one(row: Tensor, buffers: dict[str, Tensor], products: Products) -> Tensor:
            state = {**self.parameters(row), **buffers, **as_buffers(products)}
            logits: Tensor = functional_call(self.module, state, (batch,))
            return logits

        many = vmap(one, (0, 0, dict.fromkeys(products, 1)), randomness="different")
        buffers = {**buffers, **self.constants}
        with torch.autocast(params.device.type, torch.bfloat16, enabled=self.bf16):
            if self.num_runs > 1:
                return many(params, buffers, products).float()
            own_buffers = {name: buffer[0] for name, buffer in buffers.items()}
            own_products = {name: product[:, 0] for name, product in products.items()}
            return one(params[0], own_buffers, own_products)[None].float()

    def parameters(self, row: Float[Tensor, " parameters"]) -> dict[str, Tensor]:
        """The parameters of a run by name, as views."""
        numels = [shape.numel() for shape in self.param_shapes.values()]
        sizes = [size for n in numels for size in (n, padding_to_multiple(n))]
        views = zip(self.param_shapes.items(), row.split(sizes)[::2], strict=True)
        return {name: view.view(shape) for (name, shape), view in views}


def stack_runs(
    weights: list[Float[Tensor, "rows hidden"]],
) -> Float[Tensor, "rows runs hidden"]:
    """The sparse weights of all runs as one; that of a single run is not copied."""
    return torch.stack(weights, 1) if len(weights) > 1 else weights[0][:, None]


def flatten_parameters(
    parameters: Iterable[Float[Tensor, ...]],
) -> Float[Tensor, " parameters"]:
    """Parameters concatenated, each padded to an aligned size."""
    flat = [p.detach().flatten() for p in parameters]
    padded = [F.pad(x, (0, padding_to_multiple(x.numel()))) for x in flat]
    return torch.cat([torch.empty(0), *padded])


def bias_slices(
    shapes: dict[str, torch.Size], layers: Iterable[str]
) -> dict[str, slice]:
    """Columns of the biases of `SparseLinear` layers in the flat parameters."""
    layer_of, slices, begin = {f"{name}.bias": name for name in layers}, {}, 0
    for name, shape in shapes.items():
        if name in layer_of:
            slices[layer_of[name]] = slice(begin, begin + shape.numel())
        begin += shape.numel() + padding_to_multiple(shape.numel())
    return slices
