"""Explain a prediction of views: groups of views replaced, and edges left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.inference.explain import Attribution, Explanation, neighbour
from unalike.inference.views_model import ViewsModel

GROUP = "views"
CHUNK_SIZE = 1 << 10
"""Copies of a node, each without one edge, that are scored at once."""


def explain_views(
    model: ViewsModel, prepared: Graph, known: Ids | None
) -> Iterator[Explanation]:
    """Explain the predictions of prepared rows; `known` where they are known nodes.

    The shares of the groups and a remainder, the log-odds of the mean train row, add up
    to the log-odds. Neighbours act through the groups: they have no share of their own,
    and the change is that of the log-odds without the edge.
    """
    fitted = model.scorer
    rows = fitted.rows(prepared, known)
    table = fitted.table(rows)
    masks = fitted.column_groups(table)

    def scores(replaced: Bool[Tensor, " columns"]) -> Float[Tensor, "nodes classes"]:
        everywhere = replaced.expand(rows.num_rows, -1)
        return fitted.score(table, rows, everywhere).double() / model.temperature

    columns = torch.stack(list(masks.values()))
    logits = scores(torch.zeros_like(columns[0]))
    pairs = logits.argsort(dim=1, descending=True, stable=True)[:, :2]

    def odds(logits: Float[Tensor, "nodes classes"]) -> Float[Tensor, " nodes"]:
        return -logits.gather(1, pairs).diff().squeeze(1)

    full = odds(logits)
    changes = full - torch.stack([odds(scores(mask)) for mask in columns])
    # A path from the mean row to the row, group by group, in both orders.
    paths = [odds(scores(columns[n:].any(0))) for n in range(len(columns))]
    forward = torch.stack([*paths, full])
    paths = [odds(scores(columns[: n + 1].any(0))) for n in range(len(columns))]
    backward = torch.stack([full, *paths])
    shares = (forward.diff(dim=0) - backward.diff(dim=0)) / 2
    widths = columns.sum(1).double().tolist()
    for node, (best, second) in enumerate(pairs.tolist()):
        numbers = (widths, shares[:, node].tolist(), changes[:, node].tolist())
        attributions = [
            Attribution(GROUP, *group) for group in zip(masks, *numbers, strict=True)
        ]
        edges = edge_attributions(model, prepared, known, node, (best, second))
        attributions += edges
        yield Explanation(
            label=model.classes[best],
            against=model.classes[second],
            probability=float(logits[node].softmax(0)[best]),
            log_odds=float(full[node]),
            rest=float(full[node]) - sum(each.share for each in attributions),
            pushes=sorted(
                (each for each in attributions if each.share or each.change),
                key=lambda each: -max(abs(each.share), abs(each.change)),
            ),
        )


def edge_attributions(
    model: ViewsModel,
    prepared: Graph,
    known: Ids | None,
    node: int,
    classes: tuple[int, int],
) -> Iterator[Attribution]:
    """The change of the log-odds by each edge of a node: with it, minus without it."""
    row = prepared.select_rows(torch.tensor([node]))
    ends = row.adjacency.indices.long()
    own = None if known is None else known[node : node + 1]
    full = log_odds(model, row, own, classes)
    for chunk in torch.arange(len(ends)).split(CHUNK_SIZE):
        copies = row.with_rows(torch.zeros_like(chunk), without_each(ends, chunk, row))
        ids = None if own is None else own.expand(len(chunk))
        changes = full - log_odds(model, copies, ids, classes)
        for end, change in zip(ends[chunk].tolist(), changes.tolist(), strict=True):
            yield Attribution(*neighbour(model, end), 1.0, 0.0, change)


def log_odds(
    model: ViewsModel, batch: Graph, known: Ids | None, classes: tuple[int, int]
) -> Float[Tensor, " rows"]:
    """The log-odds of the first class against the second."""
    rows = model.scorer.rows(batch, known)
    scores = model.scorer.score(model.scorer.table(rows), rows).double()
    return (scores[:, classes[0]] - scores[:, classes[1]]) / model.temperature


def without_each(ends: Ids, chunk: Ids, row: Graph) -> Adjacency:
    """Copies of a row, each without one of its entries."""
    kept = np.ones((len(chunk), len(ends)), bool)
    kept[np.arange(len(chunk)), chunk.numpy()] = False
    indices = np.broadcast_to(ends.numpy(), kept.shape)[kept]
    indptr = torch.arange(len(chunk) + 1) * (len(ends) - 1)
    dtype = row.adjacency.indices.dtype
    return Adjacency(
        indptr, torch.from_numpy(indices).to(dtype), row.adjacency.num_cols
    )
