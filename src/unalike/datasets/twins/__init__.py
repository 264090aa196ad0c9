"""Twins: synthetic graphs with the statistics of real datasets."""

from __future__ import annotations

from dataclasses import replace

from unalike.datasets.twins.configs import LARGE, SMALL
from unalike.datasets.twins.twin import Twin
from unalike.errors import lookup

TWINS = {twin.name: twin for twin in (*LARGE, *SMALL)}


def twin(
    name: str,
    *,
    num_nodes: int | None = None,
    monophily: float | None = None,
    informativeness: float | None = None,
    seed: int = 0,
) -> Twin:
    """The twin of a dataset, in any size; arguments replace its own settings."""
    result = lookup(TWINS, f"{name.removesuffix('-twin')}-twin", "twin")
    if num_nodes is not None:
        result = result.scaled(num_nodes)
    if monophily is not None:
        full_name = f"{result.name}-monophily-{monophily}"
        result = replace(result, name=full_name, monophily=monophily)
    if informativeness is not None:
        full_name = f"{result.name}-informativeness-{informativeness}"
        features = replace(result.features, informativeness=informativeness)
        result = replace(result, name=full_name, features=features)
    if seed:
        result = replace(result, name=f"{result.name}-seed-{seed}", seed=seed)
    return result
