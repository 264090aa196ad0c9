"""The public names of unalike, for type checkers and editors."""

from unalike.adjacency import Adjacency as Adjacency
from unalike.advice import Advice as Advice
from unalike.advice import advise as advise
from unalike.calibration import (
    expected_calibration_error as expected_calibration_error,
)
from unalike.calibration import temperature as temperature
from unalike.datasets import DATASETS as DATASETS
from unalike.datasets import find as find
from unalike.datasets import load as load
from unalike.datasets.twins import twin as twin
from unalike.datasets.twins.model import Twin as Twin
from unalike.errors import UserError as UserError
from unalike.experiments.result import Result as Result
from unalike.experiments.run import Place as Place
from unalike.experiments.run import run as run
from unalike.experiments.runs import Runs as Runs
from unalike.experiments.tune import tune as tune
from unalike.graph import Graph as Graph
from unalike.importing.build import import_graph as import_graph
from unalike.importing.options import ImportOptions as ImportOptions
from unalike.measures import MEASURES as MEASURES
from unalike.measures import measure as measure
from unalike.methods import METHODS as METHODS
from unalike.methods.appnp import APPNP as APPNP
from unalike.methods.correct_and_smooth import CorrectAndSmooth as CorrectAndSmooth
from unalike.methods.gat import GAT as GAT
from unalike.methods.gat_jk import GATJK as GATJK
from unalike.methods.gcn import GCN as GCN
from unalike.methods.gcn_jk import GCNJK as GCNJK
from unalike.methods.gcnii import GCNII as GCNII
from unalike.methods.gpr_gnn import GPRGNN as GPRGNN
from unalike.methods.h2gcn import H2GCN as H2GCN
from unalike.methods.label_propagation import LabelPropagation as LabelPropagation
from unalike.methods.link import LINK as LINK
from unalike.methods.link_concat import LINKConcat as LINKConcat
from unalike.methods.linkx import LINKX as LINKX
from unalike.methods.mixhop import MixHop as MixHop
from unalike.methods.mlp import MLP as MLP
from unalike.methods.sgc import SGC as SGC
from unalike.metrics import METRICS as METRICS
from unalike.metrics import Metric as Metric
from unalike.models.classifier import NodeClassifier as NodeClassifier
from unalike.models.file import load_model as load_model
from unalike.models.model import Model as Model
from unalike.split import Split as Split
from unalike.split import random_splits as random_splits
from unalike.store import Stored as Stored
from unalike.store import open_graph as open_graph
from unalike.store import save_graph as save_graph
from unalike.store import verify_graph as verify_graph
from unalike.task import Solution as Solution
from unalike.task import Task as Task
from unalike.training.settings import Training as Training
from unalike.version import __version__ as __version__
