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

    names, columns = list(masks), torch.stack(list(masks.values()))
    nothing = torch.zeros_like(columns[0])
    logits = scores(nothing)
    without = [scores(mask) for mask in columns]
    # A path from the mean row to the row, group by group, in both orders.
    forward = [scores(columns[n:].any(0)) for n in range(len(names))] + [logits]
    backward = [scores(columns[: n + 1].any(0)) for n in range(len(names))]
    backward = [logits, *backward]
    probabilities = logits.softmax(1)
    for node, own in enumerate(logits):
        best, second, *_ = own.argsort(descending=True, stable=True).tolist()

        def odds(
            x: Tensor, node: int = node, best: int = best, second: int = second
        ) -> float:
            return float(x[node, best] - x[node, second])

        groups = [
            Attribution(
                GROUP,
                name,
                value=float(columns[n].sum()),
                share=(
                    odds(forward[n + 1])
                    - odds(forward[n])
                    + odds(backward[n])
                    - odds(backward[n + 1])
                )
                / 2,
                change=odds(logits) - odds(without[n]),
            )
            for n, name in enumerate(names)
        ]
        neighbours = list(
            edge_attributions(model, prepared, known, node, (best, second))
        )
        yield Explanation(
            label=model.classes[best],
            against=model.classes[second],
            probability=float(probabilities[node, best]),
            log_odds=odds(logits),
            rest=odds(logits) - sum(each.share for each in groups),
            pushes=sorted(
                (each for each in groups + neighbours if each.share or each.change),
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
