"""Learning on non-homophilous graphs: LINKX, GNNs, datasets, measures, experiments.

Public names are imported on first use, so that the command line starts fast;
`__init__.pyi` declares them for type checkers.
"""

import warnings
from typing import Any

from unalike.lazy_exports import lazy_exports

EXPORTS = {
    "A2DUG": "methods.a2dug",
    "ACMGCN": "methods.acm_gcn",
    "APPNP": "methods.appnp",
    "Adjacency": "data.adjacency",
    "Advice": "advice",
    "CorrectAndSmooth": "methods.correct_and_smooth",
    "DATASETS": "datasets",
    "DirGNN": "methods.dir_gnn",
    "FSGNN": "methods.fsgnn",
    "GAT": "methods.gat",
    "GATJK": "methods.gat",
    "GCN": "methods.gcn",
    "GCNII": "methods.gcnii",
    "GCNJK": "methods.gcn",
    "GPRGNN": "methods.gpr_gnn",
    "GloGNN": "methods.glognn",
    "Graph": "data.graph",
    "H2GCN": "methods.h2gcn",
    "ImportOptions": "importing.options",
    "LINK": "methods.link",
    "LINKConcat": "methods.link_concat",
    "LINKX": "methods.linkx",
    "LabelPropagation": "methods.label_propagation",
    "MEASURES": "measures",
    "METHODS": "methods",
    "METRICS": "data.metrics",
    "MLP": "methods.mlp",
    "Metric": "data.metrics",
    "MixHop": "methods.mixhop",
    "Model": "inference.model",
    "NodeClassifier": "inference.classifier",
    "Poly": "methods.poly",
    "Polynormer": "methods.polynormer",
    "Result": "experiments.result",
    "RunOptions": "experiments.run",
    "Runs": "experiments.result",
    "SAGE": "methods.sage",
    "SGC": "methods.sgc",
    "Solution": "data.task",
    "Split": "data.split",
    "SqlQuery": "importing.sql",
    "StoredGraph": "data.store",
    "Task": "data.task",
    "Training": "training.state",
    "Twin": "datasets.twins.twin",
    "UserError": "errors",
    "Views": "methods.views",
    "ViewsTrees": "methods.views",
    "__version__": "version",
    "advise": "advice",
    "expected_calibration_error": "data.calibration",
    "find": "datasets",
    "import_graph": "importing.api",
    "load": "datasets",
    "load_model": "inference.model_file",
    "measure": "measures",
    "method": "methods.registry",
    "open_graph": "data.store",
    "quantile_labels": "data.graph",
    "random_splits": "data.split",
    "register": "methods.registry",
    "run": "experiments.run",
    "save_graph": "data.store",
    "temperature": "data.calibration",
    "tune": "experiments.tuning",
    "twin": "datasets.twins",
    "verify_graph": "data.store",
    "view_table": "methods.view_table",
}

DEPRECATED = {"Place": "RunOptions", "Stored": "StoredGraph"}
"""Old public names and the names that replace them."""

__all__ = list(EXPORTS)


_get, __dir__ = lazy_exports(__name__, EXPORTS)


def __getattr__(name: str) -> Any:
    if name in DEPRECATED:
        message = f"unalike.{name} is deprecated; use unalike.{DEPRECATED[name]}."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = DEPRECATED[name]
    return _get(name)
