"""unalike: learning on graphs whose neighbours are unlike each other.

The public names are imported when first used, so that the command line starts at once;
`__init__.pyi` tells them to type checkers.
"""

from importlib import import_module
from typing import Any

HOMES = {
    "APPNP": "methods.appnp",
    "Adjacency": "adjacency",
    "Advice": "advice",
    "CorrectAndSmooth": "methods.correct_and_smooth",
    "DATASETS": "datasets",
    "GAT": "methods.gat",
    "GATJK": "methods.gat_jk",
    "GCN": "methods.gcn",
    "GCNII": "methods.gcnii",
    "GCNJK": "methods.gcn_jk",
    "GPRGNN": "methods.gpr_gnn",
    "Graph": "graph",
    "H2GCN": "methods.h2gcn",
    "ImportOptions": "importing.options",
    "LINK": "methods.link",
    "LINKConcat": "methods.link_concat",
    "LINKX": "methods.linkx",
    "LabelPropagation": "methods.label_propagation",
    "MEASURES": "measures",
    "METHODS": "methods",
    "METRICS": "metrics",
    "MLP": "methods.mlp",
    "Metric": "metrics",
    "MixHop": "methods.mixhop",
    "Model": "models.model",
    "NodeClassifier": "models.classifier",
    "Place": "experiments.run",
    "Result": "experiments.result",
    "Runs": "experiments.runs",
    "SGC": "methods.sgc",
    "Solution": "task",
    "Split": "split",
    "Stored": "store",
    "Task": "task",
    "Training": "training.settings",
    "Twin": "datasets.twins.model",
    "UserError": "errors",
    "advise": "advice",
    "expected_calibration_error": "calibration",
    "find": "datasets",
    "import_graph": "importing.build",
    "load": "datasets",
    "load_model": "models.file",
    "measure": "measures",
    "method": "methods.trained",
    "open_graph": "store",
    "random_splits": "split",
    "register": "methods.trained",
    "run": "experiments.run",
    "save_graph": "store",
    "temperature": "calibration",
    "tune": "experiments.tune",
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
