"""`TWINS` and `twin()`: synthetic stand-ins of datasets."""

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
    """The twin of a dataset, in any size; what is given replaces what is its own."""
    found = lookup(TWINS, f"{name.removesuffix('-twin')}-twin", "twin")
    if num_nodes is not None:
        found = found.scaled(num_nodes)
    if monophily is not None:
        named = f"{found.name}-monophily-{monophily}"
        found = replace(found, name=named, monophily=monophily)
    if informativeness is not None:
        named = f"{found.name}-informativeness-{informativeness}"
        told = replace(found.features, informativeness=informativeness)
        found = replace(found, name=named, features=told)
    if seed:
        found = replace(found, name=f"{found.name}-seed-{seed}", seed=seed)
    return found
