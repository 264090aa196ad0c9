"""Residual MLP on rows of views, with normalised views and dropout of whole views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.task import Task
from unalike.nn.linear import Dropout
from unalike.parallel import num_threads, use_threads
from unalike.samplers.rows import RowSampler
from unalike.training.loop import FitSpec, fit
from unalike.training.state import Training
from unalike.views.blocks import CHUNK, empty_columns
from unalike.views.heads import (
    MANY_ROWS,
    NUM_SEEDS,
    Examples,
    Matrix,
    Scores,
    prefixed,
    within,
)

MAX_DEVIATIONS = 8.0
"""Standardised columns are clipped to this many standard deviations."""
HIDDEN = 128
NUM_BLOCKS = 2
DROPOUT = 0.3
VIEW_DROPOUT = 0.2
ROWS_AT_ONCE = {"cpu": 128, "cuda": 8192}
"""Rows that are embedded together without gradients; each needs room for all views."""
EPOCHS = 60
PATIENCE = 8


class ViewEmbeddings(nn.Module):
    """A linear map and a layer norm of each view; views of one width in one product."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.widths = list(widths)
        self.by_width = views_by_width(widths)
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for width, views in self.by_width.items():
            bound = width**-0.5
            for rows, into in ((width, self.weights), (1, self.biases)):
                drawn = torch.empty(len(views), rows, HIDDEN).uniform_(-bound, bound)
                into.append(nn.Parameter(drawn))
        self.norm_weight = nn.Parameter(torch.ones(len(widths), 1, HIDDEN))
        self.norm_bias = nn.Parameter(torch.zeros(len(widths), 1, HIDDEN))

    def forward(
        self, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "views nodes hidden"]:
        columns = x.split(self.widths, 1)
        products = [
            torch.baddbmm(bias, torch.stack([columns[view] for view in same]), weight)
            for same, weight, bias in zip(
                self.by_width.values(), self.weights, self.biases, strict=True
            )
        ]
        normalised = F.layer_norm(torch.cat(products), (HIDDEN,))
        return torch.addcmul(self.norm_bias, normalised, self.norm_weight)


def views_by_width(widths: Sequence[int]) -> dict[int, list[int]]:
    """The views of each width."""
    return {
        width: [view for view, own in enumerate(widths) if own == width]
        for width in dict.fromkeys(widths)
    }


class ViewMLP(nn.Module):
    """The sum of embedded views through residual blocks."""

    def __init__(self, widths: Sequence[int], num_classes: int) -> None:
        super().__init__()
        self.scale = len(widths) ** -0.5
        self.embeddings = ViewEmbeddings(widths)
        self.view_dropout = Dropout(VIEW_DROPOUT if len(widths) > 2 else 0.0)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(HIDDEN),
                nn.Linear(HIDDEN, HIDDEN),
                nn.GELU(),
                Dropout(DROPOUT),
                nn.Linear(HIDDEN, HIDDEN),
                Dropout(DROPOUT),
            )
            for _ in range(NUM_BLOCKS)
        )
        self.last = nn.Sequential(
            nn.LayerNorm(HIDDEN), Dropout(DROPOUT), nn.Linear(HIDDEN, num_classes)
        )

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        assert isinstance(batch.features, Tensor)
        if self.training:
            embedded = self.embeddings(batch.features)
            whole_views = embedded.new_ones(*embedded.shape[:2], 1)
            total = (embedded * self.view_dropout(whole_views)).sum(0)
        else:
            parts = batch.features.split(ROWS_AT_ONCE[batch.features.device.type])
            total = torch.cat([self.embeddings(part).sum(0) for part in parts])
        x = F.gelu(total * self.scale)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


@dataclass(frozen=True, eq=False)
class MLPHead:
    """The mean log probabilities of fitted MLPs on standardised rows."""

    modules: Sequence[ViewMLP]
    mean: Float[Tensor, " columns"]
    std: Float[Tensor, " columns"]
    num_classes: int
    device: torch.device | str = "cpu"

    def standardise(self, x: Matrix) -> Matrix:
        return ((x - self.mean) / self.std).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)

    @torch.no_grad()
    def __call__(self, x: Matrix) -> Scores:
        chunks = [torch.zeros(0, self.num_classes)]
        for rows in x.split(CHUNK):
            part = Graph.build(
                Adjacency.empty((len(rows), len(rows))),
                features=self.standardise(rows),
                num_classes=self.num_classes,
                directed=True,
            ).to(self.device)
            scores = [module(part).log_softmax(1) for module in self.modules]
            chunks.append(torch.stack(scores).mean(0).cpu())
        return torch.cat(chunks)

    def to_tensors(self) -> dict[str, Tensor]:
        """The weights of all modules, with the constants of the columns."""
        tensors = {"mean": self.mean, "std": self.std}
        for number, module in enumerate(self.modules):
            tensors |= prefixed(f"{number}/", module.state_dict())
        return {name: tensor.cpu() for name, tensor in tensors.items()}

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], widths: Sequence[int], num_classes: int
    ) -> MLPHead:
        """The head of a file, after checking the shapes of its tensors."""
        mean, std = tensors["mean"], tensors["std"]
        if not mean.shape == std.shape == (sum(widths),):
            raise ValueError("the MLP has a wrong number of columns")
        modules: list[ViewMLP] = []
        while own := within(tensors, f"{len(modules)}/"):
            with torch.device("meta"):
                module = ViewMLP(widths, num_classes)
            module.load_state_dict(with_joined_embeddings(own, widths), assign=True)
            modules.append(module.eval().requires_grad_(False))
        if not modules:
            raise ValueError("the MLP has no weights")
        return cls(modules, mean, std, num_classes)


def with_joined_embeddings(
    weights: Mapping[str, Tensor], widths: Sequence[int]
) -> Mapping[str, Tensor]:
    """Weights of a file; older ones have the layers of each view apart."""
    old = "embeddings.{}.{}"
    if old.format(0, "0.weight") not in weights:
        return weights

    def stacked(name: str, views: Sequence[int]) -> Tensor:
        return torch.stack([weights[old.format(view, name)] for view in views])

    by_width = views_by_width(widths)
    order = [view for same in by_width.values() for view in same]
    joined = {
        "embeddings.norm_weight": stacked("1.weight", order)[:, None],
        "embeddings.norm_bias": stacked("1.bias", order)[:, None],
    }
    for number, same in enumerate(by_width.values()):
        weight, bias = (stacked(name, same) for name in ("0.weight", "0.bias"))
        joined[f"embeddings.weights.{number}"] = weight.mT.contiguous()
        joined[f"embeddings.biases.{number}"] = bias[:, None]
    apart = {old.format(view, "") for view in order}
    others = (name for name in weights if not name.startswith(tuple(apart)))
    return joined | {name: weights[name] for name in others}


def fit_mlp(examples: Examples, device: torch.device | str = "cpu") -> MLPHead:
    """The mean of a few residual MLPs, trained in one stack."""
    many = len(examples.y) > MANY_ROWS
    mean, std = examples.x.mean(0), examples.x.std(0) + 1e-6
    untrained = MLPHead([], mean, std, examples.num_classes, device)
    count, held_out = len(examples.y), len(examples.y_stop)
    features = empty_columns((count + held_out, examples.x.shape[1]))
    for rows, first in ((examples.x, 0), (examples.x_stop, count)):
        for low in range(0, len(rows), CHUNK):
            part = untrained.standardise(rows[low : low + CHUNK])
            features[first + low : first + low + len(part)] = part
    graph = Graph.build(
        Adjacency.empty((count + held_out, count + held_out)),
        features=features,
        labels=torch.cat([examples.y, examples.y_stop]),
        num_classes=examples.num_classes,
        directed=True,
    )
    training = Training(epochs=EPOCHS, lr=2e-3 if many else 7e-4, weight_decay=0.01)
    batching = RowSampler(size=min(max(count // 20, 64), 2048))

    def make(graph: Graph) -> ViewMLP:
        return ViewMLP(examples.widths, graph.num_classes)

    task = Task(
        graph,
        torch.arange(count),
        torch.arange(count, count + held_out),
        examples.metric,
        patience=PATIENCE,
        keep=True,
    )
    seeds = range(examples.seed, examples.seed + (1 if many else NUM_SEEDS))
    runs = [
        FitSpec(make, replace(task, seed=seed), training, batching, row_wise=True)
        for seed in seeds
    ]
    # Steps on few rows are too short to be shared by threads.
    with use_threads(num_threads() if many else 1):
        solutions = fit(runs, device=torch.device(device))
    modules = []
    for solution in solutions:
        module = make(graph).to(device).eval()
        module.load_state_dict(solution.weights or {})
        modules.append(module)
    return replace(untrained, modules=modules)
