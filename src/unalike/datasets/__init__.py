"""Graph datasets: table by name, lookup and loading."""

from unalike.data.store import GraphSource as GraphSource
from unalike.datasets.base import Dataset as Dataset
from unalike.datasets.registry import DATASETS as DATASETS
from unalike.datasets.registry import find as find
from unalike.datasets.registry import load as load
from unalike.datasets.twins import TWINS as TWINS
