"""Plain: a document as JSON can tell it, with null for what is not a number."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """The same document with null where a number is not one."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
