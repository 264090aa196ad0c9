"""Score: what a method reached beside what the paper prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Score:
    """Means and standard deviations over splits, in percent."""

    mean: float | None = None
    std: float | None = None
    printed_mean: float | None = None
    printed_std: float | None = None
    relative_error: float | None = None
    """Percent lost against the full batch."""
    printed_relative_error: float | None = None
    quoted: str | None = None
    """Whose number is printed, where it is not the paper's own."""
    limit: str | None = None
    """What the paper's program ran out of: memory or time."""
    missing: str | None = None
    """Why there is nothing of ours."""
    shaded: bool = False

    @property
    def value(self) -> tuple[float, float] | None:
        """What it is ranked by: ours, or the printed where there is nothing of ours."""
        if self.mean is not None:
            return self.mean, self.std or 0.0
        if self.printed_mean is not None:
            return self.printed_mean, self.printed_std or 0.0
        return None

    @property
    def deviations(self) -> float | None:
        """How far ours is above the printed mean, in printed standard deviations."""
        if self.mean is None or self.printed_mean is None or not self.printed_std:
            return None
        return (self.mean - self.printed_mean) / self.printed_std

    @property
    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "deviations": self.deviations}

    @property
    def text(self) -> str:
        ours = "–" if self.mean is None else spread(self.mean, self.std)
        return f"{ours} ({printed})" if (printed := self._printed()) else ours

    def _printed(self) -> str:
        if self.printed_mean is None:
            return f"out of {self.limit}" if self.limit else ""
        told = spread(self.printed_mean, self.printed_std)
        return told if self.deviations is None else f"{told}, {self.deviations:+.1f}σ"


def spread(mean: float, std: float | None) -> str:
    """A mean with its standard deviation, as the paper prints them."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
