"""A quotient that is not a number where there is nothing to divide by."""

import math


def ratio(part: float, whole: float) -> float:
    """part / whole; not a number where the whole is 0."""
    return float(part) / float(whole) if whole else math.nan
