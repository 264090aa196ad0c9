"""Estimate: a mean over a sample, and how far off it may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Estimate:
    """A mean, the standard deviation of one draw, and the mean's standard error."""

    value: float
    deviation: float
    standard_error: float

    @classmethod
    def of_sample(
        cls, draws: Float[np.ndarray, " draws"], *, whole: int, drawn: int
    ) -> Estimate:
        """The mean of draws without replacement; without error if all are drawn."""
        if not len(draws):
            return cls(math.nan, math.nan, math.nan)
        deviation = float(draws.std(ddof=1)) if len(draws) > 1 else 0.0
        left = math.sqrt(1 - drawn / whole)
        error = deviation / math.sqrt(len(draws)) * left
        return cls(float(draws.mean()), deviation, error)
