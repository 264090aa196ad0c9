"""unalike: learning on graphs whose neighbours are unlike each other.

The public names are imported when first used, so that the command line starts at once;
`__init__.pyi` tells them to type checkers.
"""

from importlib import import_module
from typing import Any

HOMES = {
    "Adjacency": "adjacency",
    "DATASETS": "datasets",
    "Graph": "graph",
    "ImportOptions": "importing.options",
    "LINK": "methods.link",
    "LINKConcat": "methods.link_concat",
    "LINKX": "methods.linkx",
    "MEASURES": "measures",
    "METHODS": "methods",
    "METRICS": "metrics",
    "MLP": "methods.mlp",
    "Metric": "metrics",
    "Place": "experiments.run",
    "Result": "experiments.result",
    "Solution": "task",
    "Split": "split",
    "Stored": "store",
    "Task": "task",
    "Training": "training.settings",
    "Twin": "datasets.twins.model",
    "UserError": "errors",
    "find": "datasets",
    "import_graph": "importing.build",
    "load": "datasets",
    "measure": "measures",
    "open_graph": "store",
    "random_splits": "split",
    "run": "experiments.run",
    "save_graph": "store",
    "twin": "datasets.twins",
    "verify_graph": "store",
    "__version__": "version",
}

__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'unalike' has no attribute '{name}'")
    return getattr(import_module(f"unalike.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
