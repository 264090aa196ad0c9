"""The public names of unalike, for type checkers and editors."""

from unalike.advice import Advice as Advice
from unalike.advice import advise as advise
from unalike.data.adjacency import Adjacency as Adjacency
from unalike.data.calibration import (
    expected_calibration_error as expected_calibration_error,
)
from unalike.data.calibration import temperature as temperature
from unalike.data.graph import Graph as Graph
from unalike.data.graph import quantile_labels as quantile_labels
from unalike.data.metrics import METRICS as METRICS
from unalike.data.metrics import Metric as Metric
from unalike.data.split import Split as Split
from unalike.data.split import random_splits as random_splits
from unalike.data.store import StoredGraph as StoredGraph
from unalike.data.store import open_graph as open_graph
from unalike.data.store import save_graph as save_graph
from unalike.data.store import verify_graph as verify_graph
from unalike.data.task import Solution as Solution
from unalike.data.task import Task as Task
from unalike.datasets import DATASETS as DATASETS
from unalike.datasets import find as find
from unalike.datasets import load as load
from unalike.datasets.twins import twin as twin
from unalike.datasets.twins.twin import Twin as Twin
from unalike.errors import UserError as UserError
from unalike.experiments.result import Result as Result
from unalike.experiments.result import Runs as Runs
from unalike.experiments.run import RunOptions as RunOptions
from unalike.experiments.run import run as run
from unalike.experiments.tuning import tune as tune
from unalike.importing.api import import_graph as import_graph
from unalike.importing.api import read_graph as read_graph
from unalike.importing.options import ImportOptions as ImportOptions
from unalike.importing.sql import SqlQuery as SqlQuery
from unalike.inference.classifier import NodeClassifier as NodeClassifier
from unalike.inference.model import Model as Model
from unalike.inference.model_file import load_model as load_model
from unalike.measures import MEASURES as MEASURES
from unalike.measures import measure as measure
from unalike.methods import METHODS as METHODS
from unalike.methods.a2dug import A2DUG as A2DUG
from unalike.methods.acm_gcn import ACMGCN as ACMGCN
from unalike.methods.appnp import APPNP as APPNP
from unalike.methods.correct_and_smooth import CorrectAndSmooth as CorrectAndSmooth
from unalike.methods.dir_gnn import DirGNN as DirGNN
from unalike.methods.fsgnn import FSGNN as FSGNN
from unalike.methods.gat import GAT as GAT
from unalike.methods.gat import GATJK as GATJK
from unalike.methods.gcn import GCN as GCN
from unalike.methods.gcn import GCNJK as GCNJK
from unalike.methods.gcnii import GCNII as GCNII
from unalike.methods.glognn import GloGNN as GloGNN
from unalike.methods.gpr_gnn import GPRGNN as GPRGNN
from unalike.methods.h2gcn import H2GCN as H2GCN
from unalike.methods.label_propagation import LabelPropagation as LabelPropagation
from unalike.methods.link import LINK as LINK
from unalike.methods.link_concat import LINKConcat as LINKConcat
from unalike.methods.linkx import LINKX as LINKX
from unalike.methods.mixhop import MixHop as MixHop
from unalike.methods.mlp import MLP as MLP
from unalike.methods.poly import Poly as Poly
from unalike.methods.polynormer import Polynormer as Polynormer
from unalike.methods.registry import method as method
from unalike.methods.registry import register as register
from unalike.methods.sage import SAGE as SAGE
from unalike.methods.sgc import SGC as SGC
from unalike.methods.view_table import view_table as view_table
from unalike.methods.views import Views as Views
from unalike.methods.views import ViewsTrees as ViewsTrees
from unalike.training.state import Training as Training
from unalike.version import __version__ as __version__

# Deprecated names.
Place = RunOptions
Stored = StoredGraph
