"""Learning on non-homophilous graphs: LINKX, GNNs, datasets, measures, experiments.

Public names are imported on first use, so that the command line starts fast;
`__init__.pyi` declares them.
"""

import warnings
from pathlib import Path
from typing import Any

from unalike.lazy_exports import lazy_exports

DEPRECATED = {"Place": "RunOptions", "Stored": "StoredGraph"}
"""Old public names and the names that replace them."""

_get, __dir__, EXPORTS = lazy_exports(__name__, Path(__file__).with_suffix(".pyi"))

__all__ = list(EXPORTS)


def __getattr__(name: str) -> Any:
    if name in DEPRECATED:
        message = f"unalike.{name} is deprecated; use unalike.{DEPRECATED[name]}."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = DEPRECATED[name]
    return _get(name)
