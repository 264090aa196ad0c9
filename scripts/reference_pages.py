"""Pages of the documentation made from code: one for each method and each dataset.

MkDocs calls the functions `on_config`, `on_files` and `on_page_markdown` when the
documentation is built.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from number_sources import read_json

from unalike import Graph
from unalike.datasets import splits
from unalike.datasets.base import Dataset
from unalike.datasets.registry import DATASETS
from unalike.datasets.remote import RemoteFile
from unalike.datasets.twins import TWINS
from unalike.experiments.recipe import paper_tables
from unalike.experiments.result import to_flag
from unalike.methods import METHODS
from unalike.methods.base import Method, TrainedMethod
from unalike.options import choices, options_of
from unalike.samplers import SAMPLERS
from unalike.training.state import Training

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

NODES, DEGREE, FEATURES, CLASSES = 1_000, 10, 32, 4
"""The graph on which parameters are counted."""
HIDDEN = 64
"""Width of the measured epochs."""
SHARED = {"training", "batching", "base"}
EMPTY = "–"
ADDRESS = re.compile(r"https?://[^\s,;)]+")


def escaped(text: str) -> str:
    """Text in Markdown, with its formulas and code as they are."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [re.sub(r"[\\*_|<\[]", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def linked(paper: str) -> str:
    """A citation whose address is a link."""
    return ADDRESS.sub(r"<\g<0>>", escaped(paper))


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


def shown_count(number: int | None) -> str:
    """A count, or a dash where there is none."""
    return EMPTY if number is None else f"{number:,}"


def split_words(dataset: Dataset) -> str:
    """The first sentence of the documentation of a dataset's splits."""
    maker = dataset.split.__qualname__.partition(".")[0]
    document = inspect.getdoc(getattr(splits, maker)) or ""
    return document.partition("\n")[0].partition(";")[0].rstrip(".")


def listed_datasets() -> list[str]:
    """The datasets that are listed also without their files."""
    return [name for name, one in DATASETS.items() if not one.list_only_if_present]


def method_page(name: str) -> str:
    """The page of a method: formula, use, options, cost, paper."""
    return "\n".join(method_lines(name, METHODS[name])) + "\n"


def method_lines(name: str, kind: type[Method]) -> Iterator[str]:
    """What a method computes, where it is worth trying, its options and cost."""
    yield f"# {name}\n"
    for paragraph in (inspect.getdoc(kind) or "").split("\n\n"):
        yield f"{escaped(paragraph)}\n"
    yield f"- **Try it where** {escaped(kind.suits)}."
    yield f"- **Kind:** {kind.family}."
    yield f"- **Needs:** {'; '.join(needs(kind))}."
    yield f"- **Can do:** {'; '.join(abilities(kind))}."
    yield f"- **Cost:** {'; '.join(costs(name, kind))}."
    yield f"- **Paper:** {linked(kind.paper)}.\n"
    yield "## Example\n"
    yield f"```console\n$ unalike train chameleon-twin {name}"
    yield f"$ unalike tune chameleon-twin --trials 20 {name}\n```\n"
    yield "```python\nimport unalike\n"
    yield f'results = unalike.run("chameleon-twin", unalike.{kind.__name__}())\n```\n'
    yield (
        "The folder of [a graph of your own](../own-graph.md) may stand for "
        "`chameleon-twin`. [The leaderboard](../leaderboard.md) has scores.\n"
    )
    yield from option_table("Options", kind, skipped=[*options_of(Training())])
    if "base" in choices(kind):
        bases = (f"[{base}]({base}.md)" for base in choices(kind)["base"])
        yield f"## Base\n\nA trained method, with its options: {', '.join(bases)}.\n"
    yield from sampler_lines(kind)
    if issubclass(kind, TrainedMethod):
        yield from option_table("Options of training", Training)


def needs(kind: type[Method]) -> Iterator[str]:
    """Which inputs a method reads."""
    if reads_edges(kind):
        weights = "used" if kind().uses_edge_weights else "refused"
        yield f"edges (weights: {weights})"
    if kind().needs_features:
        yield "features"
    yield "classes or numbers" if issubclass(kind, TrainedMethod) else "classes"


def abilities(kind: type[Method]) -> Iterator[str]:
    """What a method can do besides training on a whole graph."""
    row_wise = getattr(kind, "row_wise", False) and not kind.needs_full_graph
    yield "scores new nodes" if row_wise else "scores the nodes of its graph only"
    yield "minibatches" if samplers_of(kind) else "no minibatches"
    yield f"class weights: {'used' if kind.uses_class_weights else 'refused'}"


def samplers_of(kind: type[Method]) -> list[str]:
    """The samplers of a method's minibatches."""
    if kind.family == "message passing" and has_weight_for_each_node(kind):
        return []
    return [one for one in choices(kind).get("batching", ()) if one != "full"]


def sampler_lines(kind: type[Method]) -> Iterator[str]:
    """A section for the batches of a method, each with the options of its sampler."""
    names = samplers_of(kind)
    if not names:
        return
    yield "## Batches\n"
    yield (
        "Without the name of a sampler behind the options, a step uses the full graph "
        "([minibatches](../batches.md)).\n"
    )
    for name in names:
        yield from option_table(name, SAMPLERS[name], level=3)


def option_table(
    heading: str, kind: type, *, skipped: Sequence[str] = (), level: int = 2
) -> Iterator[str]:
    """A section with a row for each option of a class; for a sampler with its text."""
    rows = list(option_rows(kind, skipped))
    sampler = kind in SAMPLERS.values()
    if not rows and not sampler:
        return
    yield f"{'#' * level} {heading}\n"
    if sampler:
        yield f"{linked(inspect.getdoc(kind) or '')}\n"
    if rows:
        yield "| option | default | |"
        yield "| :-- | :-- | :-- |"
        yield from rows
        yield ""


def option_rows(kind: type, skipped: Sequence[str]) -> Iterator[str]:
    """A row for each option of a class that is not skipped."""
    documents = field_documents(kind)
    for field in fields(kind):
        if field.name in SHARED or field.name in skipped:
            continue
        value = getattr(kind(), field.name)
        flag = "--" + field.name.replace("_", "-")
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
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


def dataset_page(name: str) -> str:
    """The page of a dataset: what, numbers, split, licence, citation, files."""
    return "\n".join(dataset_lines(name, DATASETS[name])) + "\n"


def dataset_lines(name: str, dataset: Dataset) -> Iterator[str]:
    """What a dataset is, its numbers and where it comes from."""
    yield f"# {name}\n"
    yield f"{escaped(dataset.about)} The class is: {escaped(dataset.label_meaning)}.\n"
    heads = ("nodes", "edges", "features", "classes", "edge homophily", "ĥ")
    published = asdict(dataset.published)
    homophily = ("edge_homophily", "class_homophily")
    ratios = [EMPTY if published[k] is None else f"{published[k]:g}" for k in homophily]
    yield f"| {' | '.join(heads)} |"
    yield "| --: " * len(heads) + "|"
    yield f"| {' | '.join([*dataset_counts(dataset), *ratios])} |\n"
    yield "Counts are those of the raw files. `ĥ` is class homophily.\n"
    edges = "directed" if dataset.directed else "undirected"
    yield f"- **Edges:** {edges}. **Metric:** {dataset.metric.name}."
    yield f"- **Before training:** {preparation(dataset)}."
    yield f"- **Split:** {escaped(split_words(dataset))}."
    yield f"- **Licence:** {escaped(dataset.licence)}."
    yield f"- **Citation:** {linked(dataset.citation)}."
    tables = [table for table, names in datasets_of_tables().items() if name in names]
    if tables:
        yield f"- **In the tables:** {', '.join(f'`{table}`' for table in tables)}."
    if f"{name}-twin" in TWINS:
        yield f"- **Synthetic stand-in:** `{name}-twin` ([twins](../twins.md))."
    yield f"\n## Example\n\n```console\n$ unalike fetch {name}"
    yield f"$ unalike measure {name}\n$ unalike train {name} linkx\n```\n"
    if dataset.files:
        yield "## Files\n\n| file under the data folder | from |\n| :-- | :-- |"
        yield from map(file_row, dataset.files)


def dataset_counts(dataset: Dataset) -> list[str]:
    """Numbers of nodes, edges, features and classes."""
    published = asdict(dataset.published)
    exact = asdict(dataset.counts) if dataset.counts else {}
    keys = ("num_nodes", "num_edges", "num_features", "num_classes")
    return [shown_count(exact.get(key) or published[key]) for key in keys]


def preparation(dataset: Dataset) -> str:
    """What is done to the stored graph before a method is trained."""
    steps = dataset.preparation
    parts = ["self-loops are added"] * steps.self_loops
    parts += ["the features of each node are divided by their sum"] * (
        steps.row_normalised
    )
    parts += ["edges are made undirected"] * (steps.symmetrised and dataset.directed)
    return ", ".join(parts) or "nothing is changed"


@cache
def datasets_of_tables() -> dict[str, set[str]]:
    """The datasets of every results table."""
    return {
        name: {cell.dataset for row in table.recipes() for cell in row.cells.values()}
        for name, table in paper_tables().items()
    }


def file_row(file: RemoteFile) -> str:
    """A raw file and where `fetch` gets it."""
    origin = "no public address"
    if file.mirrors:
        address, _, member = file.mirrors[0].partition("#")
        origin = f"<{address}>" + (f", inside it `{member}`" if member else "")
    return f"| `{file.path}` | {origin} |"


PAGES: dict[str, Callable[[], dict[str, str]]] = {
    "methods": lambda: {name: method_page(name) for name in METHODS},
    "datasets": lambda: {name: dataset_page(name) for name in DATASETS},
}
"""The texts of the pages of each folder, by name; FOLDER.md is their overview."""


# Hooks of MkDocs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of methods and listed datasets into the menu."""
    listed = {"methods": [*METHODS], "datasets": listed_datasets()}
    for entries in (part for top in config.nav or [] for part in top.values()):
        if not isinstance(entries, list):
            continue
        for entry in entries:
            for title, page in list(entry.items()):
                folder = str(page).removesuffix(".md")
                if folder in listed:
                    pages = [{name: f"{folder}/{name}.md"} for name in listed[folder]]
                    entry[title] = [{"Overview": page}, *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of all methods and datasets."""
    from mkdocs.structure.files import File, InclusionLevel

    listed = {*METHODS, *listed_datasets()}
    for folder, pages in PAGES.items():
        for name, text in pages().items():
            menu = "UNDEFINED" if name in listed else "NOT_IN_NAV"
            level = InclusionLevel[menu]
            path = f"{folder}/{name}.md"
            files.append(File.generated(config, path, content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Link the names in the tables of an overview to their pages."""
    folder = page.file.src_uri.removesuffix(".md")
    if folder not in PAGES:
        return markdown
    return re.sub(
        r"^\| `([\w-]+)` \|", rf"| [\1]({folder}/\1.md) |", markdown, flags=re.M
    )
