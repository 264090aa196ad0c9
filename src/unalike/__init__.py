"""unalike: learning on graphs whose neighbours are unlike each other.

The public names are imported when first used, so that the command line starts at once;
`__init__.pyi` tells them to type checkers.
"""

from importlib import import_module
from typing import Any

HOMES = {
    "DATASETS": "datasets",
    "MEASURES": "measures",
    "METRICS": "metrics",
    "Adjacency": "adjacency",
    "Graph": "graph",
    "ImportOptions": "importing.options",
    "Metric": "metrics",
    "Solution": "task",
    "Split": "split",
    "Stored": "store",
    "Task": "task",
    "Twin": "datasets.twins.model",
    "UserError": "errors",
    "__version__": "version",
    "import_graph": "importing.build",
    "load": "datasets",
    "measure": "measures",
    "open_graph": "store",
    "random_splits": "split",
    "save_graph": "store",
    "twin": "datasets.twins",
    "verify_graph": "store",
}

__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'unalike' has no attribute '{name}'")
    return getattr(import_module(f"unalike.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
