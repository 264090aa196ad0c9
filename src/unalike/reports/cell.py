"""Cell: our number beside the printed one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """Ours, where there is data, and what the paper prints, where it does."""

    ours: float | int | None
    printed: str
    error: float = 0.0
    """The standard error of the difference, where one of the two is sampled."""

    @property
    def digits(self) -> int:
        """Decimals of the printed number."""
        return len(self.printed.partition(".")[2])

    @property
    def deviates(self) -> bool:
        """Do the two differ by more than the last printed digit and chance explain?"""
        if self.ours is None or not self.printed:
            return False
        if math.isnan(self.ours):
            return True
        if self.error:
            half = 0.5 * 10.0**-self.digits
            return abs(self.ours - float(self.printed)) > 2 * self.error + half
        return float(f"{self.ours:.{self.digits}f}") != float(self.printed)

    @property
    def shaded(self) -> bool:
        """Statistics have no best."""
        return False

    @property
    def facts(self) -> dict[str, Any]:
        """All of it, by name."""
        printed = float(self.printed) if self.printed else None
        return {"ours": self.ours, "printed": printed, "deviates": self.deviates}

    @property
    def text(self) -> str:
        """Ours with as many digits as printed, then the printed number in brackets."""
        mark = "*" if self.deviates else ""
        printed = f" ({self._plain(float(self.printed))})" if self.printed else ""
        return f"{self._plain(self.ours)}{mark}{printed}"

    def _plain(self, number: float | int | None) -> str:
        if number is None:
            return "no data"
        return f"{number:,.{self.digits}f}"
