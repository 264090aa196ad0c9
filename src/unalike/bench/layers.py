"""Time and memory of the layers of unalike.pyg next to those of PyTorch Geometric."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.bench.baselines import bare_edge_index
from unalike.bench.epochs import POKEC_SIZED, free_memory, random_graph
from unalike.bench.timing import (
    WARM_UP,
    allocated_bytes,
    allocation_peak,
    interleaved_medians,
    measured_peers,
    peak_gib,
)
from unalike.data.graph import Graph
from unalike.device import reset_peak_memory
from unalike.errors import first_line, lookup, require
from unalike.options import check_options
from unalike.progress import NO_PROGRESS, Progress

# Networks of one kind of layer. The same function builds that of either library.


NetworkFactory = Callable[[Any, Graph, int], nn.Module]
"""Builds a network from a library, for a graph and a hidden width."""


class TwoLayers(nn.Module):
    """A layer, ReLU and a second layer; both may take the input of the network."""

    def __init__(
        self, first: nn.Module, second: nn.Module, *, initial: bool = False
    ) -> None:
        super().__init__()
        self.first, self.second, self.initial = first, second, initial

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        inputs = (x, edges) if self.initial else (edges,)
        return self.second(F.relu(self.first(x, *inputs)), *inputs)


class Propagation(nn.Module):
    """A linear layer, then steps along edges."""

    def __init__(self, hidden: int, propagate: nn.Module) -> None:
        super().__init__()
        self.linear, self.propagate = nn.Linear(hidden, hidden), propagate

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        return self.propagate(self.linear(x), edges)


HEADS = 8
HOPS, ALPHA = 10, 0.1
"""Of APPNP and GCN2Conv."""
POWERS = (0, 1, 2)
"""Of MixHopConv."""


def two_layers(
    make: Callable[[Any, int, int], nn.Module],
    library: Any,
    graph: Graph,
    hidden: int,
) -> nn.Module:
    """Two layers from one width to the other; the second gets what the first gives."""
    first = make(library, hidden, hidden)
    return TwoLayers(first, make(library, hidden, hidden))


def mixhop(library: Any, graph: Graph, hidden: int) -> nn.Module:
    """Two MixHop layers, whose outputs are those of all powers side by side."""
    first = library.MixHopConv(hidden, hidden, list(POWERS))
    second = library.MixHopConv(len(POWERS) * hidden, hidden, list(POWERS))
    return TwoLayers(first, second)


def gcn2(library: Any, graph: Graph, hidden: int) -> nn.Module:
    """Two layers of GCNII."""
    layers = (library.GCN2Conv(hidden, ALPHA, cached=True) for _ in range(2))
    return TwoLayers(*layers, initial=True)


def appnp(library: Any, graph: Graph, hidden: int) -> nn.Module:
    """Personalised PageRank after a linear layer."""
    return Propagation(hidden, library.APPNP(HOPS, ALPHA, cached=True))


def linkx(library: Any, graph: Graph, hidden: int) -> nn.Module:
    """LINKX with one layer in each part."""
    return library.LINKX(graph.num_nodes, hidden, hidden, hidden, num_layers=1)


def _heads(hidden: int) -> tuple[int, int]:
    """Width and number of attention heads that together have the hidden width."""
    heads = min(HEADS, hidden)
    return hidden // heads, heads


LAYERS: dict[str, NetworkFactory] = {
    "GCNConv": partial(two_layers, lambda lib, a, b: lib.GCNConv(a, b, cached=True)),
    "GATConv": partial(two_layers, lambda lib, a, b: lib.GATConv(a, *_heads(b))),
    "GATv2Conv": partial(two_layers, lambda lib, a, b: lib.GATv2Conv(a, *_heads(b))),
    "SAGEConv": partial(two_layers, lambda lib, a, b: lib.SAGEConv(a, b)),
    "GINConv": partial(two_layers, lambda lib, a, b: lib.GINConv(nn.Linear(a, b))),
    "GCN2Conv": gcn2,
    "APPNP": appnp,
    "MixHopConv": mixhop,
    "SGConv": partial(two_layers, lambda lib, a, b: lib.SGConv(a, b, 2)),
    "LINKX": linkx,
}
"""Networks by the layer that they consist of.

`cached` keeps the normalised edges after the first call, the fastest form of a layer of
PyTorch Geometric; that of SGConv would keep the propagated input of the first call.
"""


# Edges, as users of PyTorch Geometric give them.


def edge_index(graph: Graph) -> Tensor:
    """A copy of the edge index, so that each network converts its own."""
    return bare_edge_index(graph)[0].contiguous()


def csr(graph: Graph) -> Tensor:
    """`adj_t`: a torch CSR matrix with a row for each target."""
    return graph.adjacency.T.to_torch_csr()


def sorted_edge_index(graph: Graph) -> Tensor:
    """An `EdgeIndex` sorted by target, with its cache filled."""
    from torch_geometric import EdgeIndex

    size = (graph.num_nodes, graph.num_nodes)
    edges = EdgeIndex(edge_index(graph), sparse_size=size).sort_by("col").values
    return edges.fill_cache_()


class Implementation(NamedTuple):
    """A library, and the form of the edges that it gets."""

    library: str
    edges: Callable[[Graph], Tensor]
    ours: bool = False


PYG = "torch_geometric.nn"
IMPLEMENTATIONS = {
    "PyG on edge_index": Implementation(PYG, edge_index),
    "PyG on CSR": Implementation(PYG, csr),
    "PyG on EdgeIndex": Implementation(PYG, sorted_edge_index),
    "unalike on edge_index": Implementation("unalike.pyg", edge_index, ours=True),
}


SIZES: dict[str, dict[str, int]] = {
    "cora": {"nodes": 2_708, "pairs": 5_278},
    "dense": {"nodes": 20_000, "pairs": 400_000},
    "arxiv": {"nodes": 170_000, "pairs": 1_200_000},
    "pokec": {"nodes": POKEC_SIZED["nodes"], "pairs": POKEC_SIZED["pairs"]},
}
"""Random graphs; each pair is stored in both directions."""
DEVICE_SIZES = {"cpu": ("cora", "dense", "arxiv"), "cuda": tuple(SIZES)}
"""The sizes that are timed by type of device."""


class Network(NamedTuple):
    """A network in one implementation, ready to be timed."""

    row: dict[str, Any]
    forward: Callable[[], object] = lambda: None
    step: Callable[[], object] = lambda: None


@dataclass(frozen=True, kw_only=True)
class LayerBenchmark:
    """Times networks of one kind of layer, ours and PyTorch Geometric's in turn."""

    hidden: tuple[int, ...] = (64,)
    only: tuple[str, ...] = ()
    """Layers to time; all of them if empty."""
    compiled: bool = False
    """Time every network under `torch.compile` too."""
    repeats: int = 10
    """Calls to take the median of."""
    device: torch.device
    progress: Progress = NO_PROGRESS

    def __post_init__(self) -> None:
        check_options(self)

    def run(self, graphs: Sequence[tuple[str, Graph]]) -> dict[str, Any]:
        """Forward pass, training step and memory of every layer on every graph."""
        require("torch_geometric", "pyg", "bench layers needs torch-geometric")
        layers = {name: lookup(LAYERS, name, "layer") for name in self.only or LAYERS}
        self.progress.stage(
            "layers", len(layers) * len(graphs) * len(self.hidden), "comparisons"
        )
        rows = []
        for size, graph in graphs:
            graph = graph.to(self.device)
            for hidden in self.hidden:
                for layer, make in layers.items():
                    about = {
                        "layer": layer,
                        "graph": size,
                        "nodes": graph.num_nodes,
                        "entries": graph.adjacency.nnz,
                        "hidden": hidden,
                    }
                    # PyG and torch.compile warn of their own deprecated calls.
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        rows += self._compare(about, make, graph)
                    self.progress.advance(1, f"{layer}, {size}, hidden {hidden}")
        return {"repeats": self.repeats, "layers": rows}

    def _compare(
        self, about: dict[str, Any], make: NetworkFactory, graph: Graph
    ) -> list[dict[str, Any]]:
        """The rows of one layer on one graph; networks take turns while timed."""
        torch.manual_seed(0)
        x = torch.randn(graph.num_nodes, about["hidden"], device=self.device)
        networks = [
            self._prepare(
                {**about, "what": what, "compiled": compiled, "ours": ours},
                partial(make, import_module(library)),
                edges,
                graph,
                x,
            )
            for compiled in (False, True)[: 1 + self.compiled]
            for what, (library, edges, ours) in IMPLEMENTATIONS.items()
        ]
        ready = [network for network in networks if "failed" not in network.row]
        for key in ("forward", "step"):
            functions = [getattr(network, key) for network in ready]
            times = interleaved_medians(functions, self.device, self.repeats)
            for network, seconds in zip(ready, times, strict=True):
                network.row[f"{key}_ms"] = 1e3 * seconds
        rows = [network.row for network in networks]
        del networks, ready, functions
        free_memory(self.device)
        return [{**row, **relative_to_fastest(row, rows)} for row in rows]

    def _prepare(
        self,
        row: dict[str, Any],
        make: Callable[[Graph, int], nn.Module],
        edges: Callable[[Graph], Tensor],
        graph: Graph,
        x: Tensor,
    ) -> Network:
        """A warm network with its memory; one that fails says why in its row."""
        row = {**row, "forward_ms": None, "step_ms": None, "gib": None}
        before = allocated_bytes(self.device)
        try:
            network = make(graph, row["hidden"]).to(self.device)
            if row["compiled"]:
                network.compile()
            forward, step = calls(network, x, edges(graph))
            row["gib"] = self._warm_up(forward, step, before)
        except Exception as error:
            out_of_memory = isinstance(error, torch.OutOfMemoryError)
            if row["ours"] and not out_of_memory:
                raise
            # A layer of PyTorch Geometric need not take every form, nor compile.
            reason = first_line(f"{type(error).__name__}: {error}")
            return Network(
                {**row, "failed": "out of memory" if out_of_memory else reason}
            )
        return Network(row, forward, step)

    def _warm_up(
        self, forward: Callable[[], object], step: Callable[[], object], before: int
    ) -> float | None:
        """The peak memory of a step in GiB, after warm-up.

        On a GPU, what the network and its edges hold counts too; on a CPU, only what a
        step allocates.
        """
        on_gpu = self.device.type == "cuda"
        for _ in range(WARM_UP if on_gpu else 1):
            forward()
            step()
        if not on_gpu:
            return allocation_peak(step) / 2**30
        reset_peak_memory(str(self.device))
        step()
        return peak_gib(self.device, before)


def calls(
    network: nn.Module, x: Tensor, edges: Tensor
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The forward pass without gradients, and a training step with AdamW."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)

    def forward() -> None:
        network.eval()
        with torch.no_grad():
            network(x, edges)

    def step() -> None:
        network.train()
        network(x, edges).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return forward, step


def relative_to_fastest(
    row: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Speed and memory next to the fastest form of PyG, compiled if the row is."""
    peers = measured_peers(row, rows, "step_ms", ("compiled",))
    if not peers:
        return dict.fromkeys(("times_forward", "times_step", "share_of_memory"))
    fastest = min(peers, key=lambda peer: peer["step_ms"])
    forward = min(peer["forward_ms"] for peer in peers)
    return {
        "times_forward": forward / row["forward_ms"],
        "times_step": fastest["step_ms"] / row["step_ms"],
        "share_of_memory": row["gib"] / fastest["gib"] if fastest["gib"] else None,
    }


def sized_graphs(sizes: Sequence[str], device: torch.device) -> list[tuple[str, Graph]]:
    """Random graphs of named sizes; those of the device if none is named."""
    chosen = {
        name: lookup(SIZES, name, "size") for name in sizes or DEVICE_SIZES[device.type]
    }
    return [(name, random_graph(**size, features=1)) for name, size in chosen.items()]
