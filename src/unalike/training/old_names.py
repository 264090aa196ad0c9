"""Parameter names of model files of format 2 and of checkpoints without a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor, nn

from unalike.nn.sparse import padding_to_multiple
from unalike.nn.sparse_linear import SparseLinear

Rule: TypeAlias = tuple[str, str | Callable[[re.Match[str]], str]]
"""A pattern of a current parameter name, and the old name."""


def first_layer(new: str, table: str = "features") -> list[Rule]:
    """An input layer: `tables` and `offsets` if sparse, `entry` if dense."""
    return [
        (rf"{new}\.weight<sparse>", f"tables.{table}"),
        (rf"{new}\.bias<sparse>", f"offsets.{table}"),
        (rf"{new}\.weight", "entry.weight"),
        (rf"{new}\.bias", "entry.offset"),
        (rf"{new}\.dropout\.p", "entry.drop.rate"),
    ]


def layers(new: str, old: str) -> list[Rule]:
    """The layers of an MLP after the first."""
    return [
        (rf"{new}\.(\d+)\.norm_act_drop\.(.*)", rf"{old}.\1.bridge.\2"),
        (rf"{new}\.(\d+)\.linear\.(.*)", rf"{old}.\1.linear.\2"),
    ]


GCN: list[Rule] = [
    *first_layer("first"),
    (r"blocks\.(\d+)\.linear\.weight", r"convolutions.weights.\1"),
    (r"blocks\.(\d+)\.norm_act_drop\.(.*)", r"convolutions.bridges.\1.\2"),
    (r"bias\.bias", "convolutions.last.offset"),
]
GAT: list[Rule] = [
    *first_layer("first"),
    (r"layers\.att_src\.(.*)", r"attentions.sources.\1"),
    (r"layers\.att_dst\.(.*)", r"attentions.targets.\1"),
    (r"layers\.bias\.bias", "attentions.last.offset"),
    (r"layers\.(.*)", r"attentions.\1"),
]
LSTMS = {"forward_lstm": "there", "backward_lstm": "back"}
LSTM_WEIGHTS = {"weight_ih": "inward", "weight_hh": "onward", "bias": "offset"}
JUMP: list[Rule] = [
    (
        r"jump\.(\w+_lstm)\.(\w+)",
        lambda match: f"join.{LSTMS[match[1]]}.{LSTM_WEIGHTS[match[2]]}",
    ),
    (r"jump\.(.*)", r"join.\1"),
]
MLP: list[Rule] = [*first_layer(r"mlp\.first"), *layers(r"mlp\.layers", "rest")]
RULES: dict[str, list[Rule]] = {
    "APPNPModule": MLP,
    "GATModule": GAT,
    "GATJKModule": [*GAT, *JUMP],
    "GCNModule": GCN,
    "GCNJKModule": [*GCN, *JUMP],
    "GCNIIModule": [*first_layer("first"), (r"blocks\.(.*)", r"bridges.\1")],
    "GPRGNNModule": MLP,
    "H2GCNModule": first_layer("first"),
    "LINKModule": first_layer("linear", "edges"),
    "LINKConcatModule": [
        *first_layer("first_a", "edges"),
        *first_layer("first_x"),
        *layers(r"mlp\.layers", "rest"),
    ],
    "LINKXModule": [
        *first_layer(r"mlp_a\.first", "edges"),
        *first_layer(r"mlp_x\.first"),
        *layers(r"mlp_a\.layers", "edges"),
        *layers(r"mlp_x\.layers", "features"),
        (r"combine\.(.*)", r"mix.\1"),
        (r"mlp_f\.first\.(.*)", r"final.0.\1"),
        (
            r"mlp_f\.layers\.(\d+)\.norm_act_drop\.(.*)",
            lambda match: f"final.{int(match[1]) + 1}.bridge.{match[2]}",
        ),
        (
            r"mlp_f\.layers\.(\d+)\.linear\.(.*)",
            lambda match: f"final.{int(match[1]) + 1}.linear.{match[2]}",
        ),
    ],
    "MLPModule": MLP,
    "MixHopModule": [*first_layer("first"), *layers("blocks", "further")],
    "SGCModule": [*first_layer("linear"), ("bias", "late")],
}
"""Rules for the parameter names of each module class."""

STATE_NAMES = {
    "weight": "now",
    "best_weight": "best",
    "weight_bf16": "half",
    "exp_avg": "first",
    "exp_avg_sq": "second",
    "last_step": "seen",
    "valid_scores": "grades",
    "best_score": "best",
    "epoch_counter": "clock",
    "step_counter": "steps",
}
"""Old names of the tensors of a training state, in checkpoints without a format."""

ORDER = (
    *("late", "gamma", "offsets.edges", "offsets.features", "entry."),
    *("edges.", "features.", "mix.", "rest.", "further."),
    *("convolutions.weights.", "convolutions.bridges.", "convolutions.last."),
    *("attentions.weights.", "attentions.sources.", "attentions.targets."),
    *("attentions.norms.", "attentions.last.", "weights.", "bridges.", "norms."),
    *("join.", "final."),
)
"""Beginnings of old parameter names in the order of a module's parameters."""


def old_name(module: nn.Module, name: str) -> str:
    """The old name of a parameter or buffer of a module."""
    layer = module.get_submodule(name.rpartition(".")[0])
    marked = f"{name}<sparse>" if isinstance(layer, SparseLinear) else name
    for pattern, old in RULES.get(type(module).__name__, []):
        if match := re.fullmatch(pattern, marked):
            renamed = old(match) if callable(old) else match.expand(old)
            break
    else:
        renamed = name
    return re.sub(r"\.p$", ".rate", renamed)


def with_new_names(
    module: nn.Module, weights: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Weights with old names under their current names."""
    renamed = {}
    for name in module.state_dict():
        old = old_name(module, name)
        other = re.sub("bias$", "offset", old)  # in place of a batch norm
        renamed[name] = weights[old if old in weights else other]
    if len(renamed) != len(weights):
        raise ValueError(f"{len(weights)} weights instead of {len(renamed)}")
    return renamed


def old_columns(
    module: nn.Module, shapes: Mapping[str, torch.Size]
) -> Int[Tensor, " parameters"]:
    """The old column of each column of a run's flat parameters."""

    def rank(name: str) -> int:
        old = old_name(module, name)
        return next(i for i, first in enumerate(ORDER) if old.startswith(first))

    begins, begin = {}, 0
    for name in sorted(shapes, key=rank):
        begins[name] = begin
        begin += _aligned(shapes[name])
    parts = [
        begins[name] + torch.arange(_aligned(shape)) for name, shape in shapes.items()
    ]
    return torch.cat([torch.empty(0, dtype=torch.int64), *parts])


def _aligned(shape: torch.Size) -> int:
    return shape.numel() + padding_to_multiple(shape.numel())
