"""Sections of docs/methods.md and docs/datasets.md, made from the code's own data."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from functools import cache
from itertools import pairwise

import torch
from number_sources import RESULTS, Sources, read_json

from unalike import Graph
from unalike.datasets import splits
from unalike.datasets.base import Dataset
from unalike.datasets.registry import DATASETS
from unalike.experiments.result import to_flag
from unalike.methods import METHODS
from unalike.methods.base import Method, TrainedMethod
from unalike.options import choices, options_of
from unalike.training.state import Training

NODES, DEGREE, FEATURES, CLASSES = 1_000, 10, 32, 4
"""The graph on which parameters are counted."""
HIDDEN = 64
"""Width of the measured epochs."""
SHARED = {"training", "batching", "base"}
EMPTY = "–"
ADDRESS = re.compile(r"https?://[^\s,;]+")


def escaped(text: str) -> str:
    """Text in Markdown, with its formulas and code as they are."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [re.sub(r"[\\*_|<\[]", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def method_reference(sources: Sources) -> str:
    """A section for each method: formula, use, options, cost, paper."""
    return (
        "\n".join("\n".join(method_section(*item)) for item in METHODS.items()) + "\n"
    )


def method_section(name: str, kind: type[Method]) -> Iterator[str]:
    """What a method computes, where it is worth trying, its options and cost."""
    yield f"\n## {name}\n"
    for paragraph in (inspect.getdoc(kind) or "").split("\n\n"):
        yield f"{escaped(paragraph)}\n"
    yield f"- **Try it where** {escaped(kind.suits)}."
    yield f"- **Kind:** {kind.family}; {'; '.join(abilities(kind))}."
    yield f"- **Cost:** {'; '.join(costs(name, kind))}."
    yield f"- **Paper:** {linked(kind.paper)}.\n"
    rows = list(option_rows(kind))
    if rows:
        yield "| option | default | |"
        yield "| :-- | :-- | :-- |"
        yield from rows


def linked(paper: str) -> str:
    """A citation whose address is a link."""
    return ADDRESS.sub(r"<\g<0>>", escaped(paper))


def abilities(kind: type[Method]) -> Iterator[str]:
    """What a method can do besides training on a whole graph."""
    method = kind()
    row_wise = getattr(kind, "row_wise", False) and not kind.needs_full_graph
    yield "scores new nodes" if row_wise else "scores the nodes of its graph only"
    samplers = [s for s in choices(kind).get("batching", ()) if s != "full"]
    if kind.family == "message passing" and has_weight_for_each_node(kind):
        samplers = []
    yield f"minibatches: {', '.join(samplers)}" if samplers else "no minibatches"
    if not reads_edges(kind):
        yield "uses no edges"
    else:
        yield f"edge weights: {'used' if method.uses_edge_weights else 'refused'}"
    yield "classes or numbers" if issubclass(kind, TrainedMethod) else "classes only"
    yield f"class weights: {'used' if kind.uses_class_weights else 'refused'}"
    if method.needs_features:
        yield "needs features"


def has_weight_for_each_node(kind: type[TrainedMethod]) -> bool:
    """Whether a larger graph needs more weights, so that subgraphs have others."""
    return num_parameters(kind) != num_parameters(kind, 2 * NODES)


def reads_edges(kind: type[Method]) -> bool:
    """Whether a method reads more than features."""
    return kind is not METHODS["mlp"]


def costs(name: str, kind: type[Method]) -> Iterator[str]:
    """Parameters of the default options, and measured epochs where there are any."""
    if issubclass(kind, TrainedMethod):
        yield (
            f"{num_parameters(kind):,} parameters by default on {NODES:,} nodes with "
            f"{FEATURES} features and {CLASSES} classes"
        )
    else:
        yield "no weights trained by gradient steps on the graph"
    for file, where in (
        ("methods-h200", "H200, a graph of the size of pokec"),
        ("engine-h200", "H200, a graph of the size of pokec"),
        ("methods-cpu", "two CPU cores, a graph of the size of arxiv-year"),
    ):
        for row in read_json(f"bench/{file}")["epochs"]:
            key = (row["method"], row["hidden"], row["what"])
            if key == (name, HIDDEN, "unalike float32"):
                memory = f" and {row['gib']:.1f} GiB" if "gib" in row else ""
                size = f"at hidden {HIDDEN} ({where})"
                yield f"{row['ms']:,.0f} ms an epoch{memory} {size}"


@cache
def num_parameters(kind: type[TrainedMethod], nodes: int = NODES) -> int:
    """The number of weights of a method with its default options."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes, (2, nodes * DEGREE // 2), generator=generator)
    graph = Graph.from_edges(
        *ends,
        num_nodes=nodes,
        features=torch.rand(nodes, FEATURES, generator=generator),
        labels=torch.arange(nodes) % CLASSES,
    )
    method = kind()
    network = method.network_on_meta(method.prepare(graph))
    return sum(weight.numel() for weight in network.parameters())


def option_rows(kind: type[Method]) -> Iterator[str]:
    """A row for each option of a method's own."""
    shared = {*options_of(Training()), "batching"}
    documents = field_documents(kind)
    for field in fields(kind):
        if field.name in SHARED or field.name in shared:
            continue
        value = getattr(kind(), field.name)
        flag = "--" + field.name.replace("_", "-")
        shown = " ".join(value) if isinstance(value, tuple) else str(value)
        if isinstance(value, bool):
            (flag,) = to_flag(field.name, not value, value)
            shown = "yes" if value else "no"
        text = escaped(documents.get(field.name, ""))
        yield f"| `{flag}` | {escaped(shown)} | {text} |"


def field_documents(kind: type) -> dict[str, str]:
    """The docstring behind each field of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):
            continue
        body = ast.parse(source).body[0].body
        for one, after in pairwise(body):
            if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr):
                found[one.target.id] = ast.literal_eval(after.value)
    return found


def dataset_reference(sources: Sources) -> str:
    """A section for each dataset: what, numbers, split, licence, citation."""
    listed = {n: d for n, d in DATASETS.items() if not d.list_only_if_present}
    return (
        "\n".join("\n".join(dataset_section(*item)) for item in listed.items()) + "\n"
    )


def dataset_section(name: str, dataset: Dataset) -> Iterator[str]:
    """What a dataset is, its numbers and where it comes from."""
    yield f"\n## {name}\n"
    yield f"{escaped(dataset.about)} The class is: {escaped(dataset.label_meaning)}.\n"
    heads = ("nodes", "edges", "features", "classes", "edge homophily", "ĥ")
    published = asdict(dataset.published)
    exact = asdict(dataset.counts) if dataset.counts else {}
    keys = ("num_nodes", "num_edges", "num_features", "num_classes")
    counts = [shown_count(exact.get(key) or published[key]) for key in keys]
    homophily = ("edge_homophily", "class_homophily")
    ratios = [EMPTY if published[k] is None else f"{published[k]:g}" for k in homophily]
    yield f"| {' | '.join(heads)} |"
    yield "| --: " * len(heads) + "|"
    yield f"| {' | '.join([*counts, *ratios])} |\n"
    edges = "directed" if dataset.directed else "undirected"
    yield f"- **Edges:** {edges}. **Metric:** {dataset.metric.name}."
    yield f"- **Split:** {escaped(split_words(dataset))}."
    yield f"- **Licence:** {escaped(dataset.licence)}."
    yield f"- **Citation:** {linked(dataset.citation)}."


def shown_count(number: int | None) -> str:
    """A count, or a dash where there is none."""
    return EMPTY if number is None else f"{number:,}"


def split_words(dataset: Dataset) -> str:
    """The first sentence of the documentation of a dataset's splits."""
    maker = dataset.split.__qualname__.partition(".")[0]
    document = inspect.getdoc(getattr(splits, maker)) or ""
    return document.partition("\n")[0].partition(";")[0].rstrip(".")


def results_table(name: str) -> Callable[[Sources], str]:
    """The table of a file of results/, which `make numbers` writes too."""
    return lambda sources: (RESULTS / f"{name}.md").read_text("utf-8")


REFERENCE_BLOCKS = {
    "methods": method_reference,
    "datasets": dataset_reference,
    **{
        f"results {name}": results_table(name)
        for name in (
            *("prior-datasets", "homophilous", "full-batch"),
            *("facebook100", "minibatch", "since-2021"),
        )
    },
}
"""Functions of the blocks of docs/methods.md, datasets.md and leaderboard.md."""
