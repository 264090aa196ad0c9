"""The public names of unalike, for type checkers and editors."""

from unalike.adjacency import Adjacency as Adjacency
from unalike.datasets import DATASETS as DATASETS
from unalike.datasets import load as load
from unalike.datasets.twins import twin as twin
from unalike.datasets.twins.model import Twin as Twin
from unalike.errors import UserError as UserError
from unalike.graph import Graph as Graph
from unalike.importing.build import import_graph as import_graph
from unalike.importing.options import ImportOptions as ImportOptions
from unalike.measures import MEASURES as MEASURES
from unalike.measures import measure as measure
from unalike.metrics import METRICS as METRICS
from unalike.metrics import Metric as Metric
from unalike.split import Split as Split
from unalike.split import random_splits as random_splits
from unalike.store import Stored as Stored
from unalike.store import open_graph as open_graph
from unalike.store import save_graph as save_graph
from unalike.store import verify_graph as verify_graph
from unalike.task import Solution as Solution
from unalike.task import Task as Task
from unalike.version import __version__ as __version__
