"""A quotient that is not a number where there is nothing to divide by."""

import math
from typing import SupportsFloat


def ratio(part: SupportsFloat, whole: SupportsFloat) -> float:
    """part / whole; not a number where the whole is 0."""
    return float(part) / float(whole) if float(whole) else math.nan
