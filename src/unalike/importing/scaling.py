"""Scale numeric columns: standard and quantile scaling, fitted on a sample of rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from unalike.errors import UserError

ScaleName = Literal["standard", "quantile", "none"]
Values = Float64[np.ndarray, " values"]

SAMPLE_SIZE = 1 << 17
"""Values of a column that are kept to fit its scale."""
HEAVY_TAIL = 10
"""Standard deviations of a normal column beyond which an extreme is a heavy tail."""
CLIPPED = 0.001
"""Fraction of the values on each side that standard scaling clips."""
NUM_QUANTILES = 101
SMALLEST = 1e-290
"""Numbers below are taken for 0 where values are interpolated."""


@dataclass(frozen=True)
class StandardScale:
    """(clip(x) - mean) / std, of log x where the column has a heavy tail."""

    log: bool
    """Take sign(x) log(1 + |x|) first."""
    low: float
    high: float
    mean: float
    std: float

    @classmethod
    def fit(cls, values: Values) -> StandardScale:
        """Fit mean and std; a column of which most values are 0 keeps its zeros."""
        log = has_heavy_tail(values)
        values = _signed_log(values) if log else values
        low, high = (float(q) for q in np.quantile(values, [CLIPPED, 1 - CLIPPED]))
        values = values.clip(low, high)
        mean, std = float(values.mean()), float(values.std())
        if np.mean(values == 0) > 0.5:
            mean, std = 0.0, float(np.sqrt(np.mean(values[values != 0] ** 2)))
        scalable = math.isfinite(std) and std > 0
        return cls(log, low, high, mean, std if scalable else 1.0)

    def __call__(self, values: Values) -> Values:
        values = _signed_log(values) if self.log else values
        return (values.clip(self.low, self.high) - self.mean) / self.std


@dataclass(frozen=True)
class QuantileScale:
    """The quantile of a value among the fitted ones, from -1 to 1."""

    quantiles: tuple[float, ...]

    @classmethod
    def fit(cls, values: Values) -> QuantileScale:
        levels = np.linspace(0, 1, NUM_QUANTILES)
        return cls(tuple(np.quantile(values, levels).tolist()))

    def __call__(self, values: Values) -> Values:
        """Interpolate; a value that fills several quantiles is mapped to their mean."""
        # Between numbers that are this close to 0, slopes would be infinite.
        points, values = (
            np.where(np.abs(numbers) < SMALLEST, 0.0, numbers)
            for numbers in (np.array(self.quantiles), values)
        )
        levels = np.linspace(-1, 1, NUM_QUANTILES)
        below = np.interp(values, points, levels)
        above = -np.interp(-values, -points[::-1], -levels[::-1])
        return (below + above) / 2


Scale = StandardScale | QuantileScale

SCALES: dict[str, type[Scale]] = {"standard": StandardScale, "quantile": QuantileScale}


def fit_scale(name: ScaleName, values: Values) -> Scale | None:
    """Fit a scale; None for columns that stay as they are, such as 0 and 1."""
    if name == "none" or not len(values) or np.isin(values, (0, 1)).all():
        return None
    return SCALES[name].fit(values)


def scale_to_dict(scale: Scale) -> dict[str, Any]:
    """The scale as graph.json and model files store it."""
    kind = next(name for name, known in SCALES.items() if isinstance(scale, known))
    return {"kind": kind, **asdict(scale)}


def scale_from_dict(document: dict[str, Any]) -> Scale:
    """Read what `scale_to_dict` wrote, and check that it can be applied."""
    try:
        fields: dict[str, Any] = {
            key: tuple(map(float, value)) if isinstance(value, list) else value
            for key, value in document.items()
        }
        scale = SCALES[fields.pop("kind")](**fields)
        valid = np.isfinite(scale(np.array([0.0, 1.0]))).all()
    except (KeyError, TypeError, ValueError):
        valid = False
    if not valid:
        raise UserError(f"{document} does not describe the scale of a feature.")
    return scale


def has_heavy_tail(values: Values) -> bool:
    """Whether extremes lie far outside what the inner values of a column suggest."""
    low, first, middle, ninth, high = np.quantile(
        values, [CLIPPED, 0.1, 0.5, 0.9, 1 - CLIPPED]
    )
    inner = (ninth - first) / 2.563
    return bool(max(high - middle, middle - low) > HEAVY_TAIL * inner)


def _signed_log(values: Values) -> Values:
    return np.sign(values) * np.log1p(np.abs(values))


@dataclass
class ValueSample:
    """Every k-th value of a stream that float32 holds; k doubles where it is full."""

    stride: int = 1
    seen: int = 0
    parts: list[Values] = field(default_factory=list)

    def add(self, values: Values) -> None:
        finite = values[np.abs(values) < np.finfo(np.float32).max]
        self.parts.append(finite[-self.seen % self.stride :: self.stride])
        self.seen += len(finite)
        while sum(map(len, self.parts)) > SAMPLE_SIZE:
            self.parts = [self.values()[::2]]
            self.stride *= 2

    def values(self) -> Values:
        return np.concatenate([np.zeros(0), *self.parts])
