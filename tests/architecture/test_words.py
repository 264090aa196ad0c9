"""Identifiers and docstrings use the words of PyTorch, SciPy and scikit-learn."""

import ast
import re

import pytest
from sources import FILES, tree

WORDS = {
    "agenda": "plan",
    "bridge": "norm, activation and dropout",
    "card": "GPU",
    "chance": "generator, rng or probability",
    "contender": "benchmark case",
    "crew": "workers",
    "crossing": "fused norm, activation and dropout",
    "crowded": "dense enough",
    "deck": "edges per class",
    "descent": "gradient step",
    "desk": "cache",
    "drafting": "writing",
    "exam": "experiment",
    "flown": "propagated",
    "hunt": "search",
    "liking": "class preference",
    "manners": "crawl policy",
    "perceptron": "MLP",
    "rectified": "relu",
    "rival": "baseline",
    "shelf": "runs of a method",
    "shelves": "runs of methods",
    "sighting": "column type inference",
    "sitting": "output of an experiment",
    "slope": "gradient",
    "society": "node parameters",
    "spacious": "file-backed",
    "stirred": "mixed bits",
    "tally": "edge statistics",
    "taste": "class preference",
    "tired": "early stopping",
    "told": "the thing itself",
}
"""Words of no library of the field, and what to say in their place."""

ALLOWED = {"negative_slope", "NEGATIVE_SLOPE", "_negative_slope"}
"""What PyTorch calls so."""


def identifiers(node):
    """The names that a syntax node binds or reads."""
    for field in ("id", "arg", "attr", "name", "asname"):
        if isinstance(name := getattr(node, field, None), str):
            yield name


def docstring(node):
    """The docstring of a node, or of the assignment before a string."""
    value = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    return ""


def words(file):
    """The words of identifiers and docstrings of a file, with their lines."""
    for node in ast.walk(tree(file)):
        line = getattr(node, "lineno", 0)
        for name in identifiers(node):
            if name not in ALLOWED:
                parts = re.findall(r"[A-Z]?[a-z]+", name)
                yield from ((line, part.lower()) for part in parts)
        text = docstring(node)
        for name in ALLOWED:
            text = text.replace(name, "")
        yield from ((line, word) for word in re.findall(r"[a-z]+", text.lower()))


@pytest.mark.parametrize("file", FILES)
def test_a_file_has_no_words_of_a_dialect(file):
    used = {
        f"line {line}: '{word}', say {WORDS[stem]}"
        for line, word in words(file)
        for stem in (word, word.removesuffix("s"))
        if stem in WORDS
    }
    assert not used
