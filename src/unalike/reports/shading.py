"""Shading: which cells of a column the paper's tables mark as the best."""

from collections.abc import Callable, Sequence

Value = tuple[float, float] | None
"""Mean and standard deviation."""


def highest(column: Sequence[Value], count: int) -> set[int]:
    """The places of the highest means."""
    there = [place for place, value in enumerate(column) if value]
    ranked = sorted(there, key=lambda place: column[place] or (), reverse=True)
    return set(ranked[:count])


def near_best(column: Sequence[Value]) -> set[int]:
    """The best mean, and those less than its standard deviation below it."""
    values = [value for value in column if value]
    if not values:
        return set()
    mean, std = max(values, key=lambda value: (value[0], -value[1]))
    places = enumerate(column)
    return {place for place, value in places if value and value[0] >= mean - std}


SHADINGS: dict[str, Callable[[Sequence[Value]], set[int]]] = {
    "best": lambda column: highest(column, 1),
    "three best": lambda column: highest(column, 3),
    "best up to one standard deviation": near_best,
    "none": lambda column: set(),
}
