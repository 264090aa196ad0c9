"""What every source file keeps to."""

import ast

from sources import FILES, family, text, tree

from unalike import DATASETS, METRICS
from unalike.datasets.twins import TWINS
from unalike.methods import METHODS

NAMES = {*DATASETS, *TWINS, *METHODS, *METRICS}
FORBIDDEN = ("type: ignore", "noqa", "TODO", "FIXME", "pragma: no cover")


def offences(found):
    """What each file does wrong, where it does."""
    return {file: wrong for file in FILES if (wrong := found(file))}


def test_files_open_with_one_line_that_says_what_they_are():
    def wrong(file):
        first, *rest = (ast.get_docstring(tree(file)) or "").split("\n")
        return not first.endswith((".", "?")) or (rest and rest[0])

    assert not offences(wrong)


def test_no_mark_of_unfinished_or_silenced_work():
    assert not offences(lambda file: [word for word in FORBIDDEN if word in text(file)])


def called(file):
    """The names of plain functions that a file calls."""
    return {
        node.func.id
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def test_only_commands_print():
    wrong = offences(lambda file: "print" in called(file))
    assert {family(file) for file in wrong} == {"cli"}


def reads_environment(file):
    names = {n.attr for n in ast.walk(tree(file)) if isinstance(n, ast.Attribute)}
    names |= {n.name for n in ast.walk(tree(file)) if isinstance(n, ast.alias)}
    return names & {"environ", "environb", "getenv", "putenv"}


def test_only_the_data_root_and_the_start_use_the_environment():
    assert set(offences(reads_environment)) == {
        "cli/main.py",
        "system.py",
        "training/distributed.py",
    }


def compared(file):
    """The strings that a file compares something with."""
    for node in ast.walk(tree(file)):
        sides = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        for side in sides:
            elements = getattr(side, "elts", [side])
            yield from (e.value for e in elements if isinstance(e, ast.Constant))


def test_nothing_is_decided_by_the_name_of_a_method_or_dataset():
    assert not offences(
        lambda file: NAMES & {one for one in compared(file) if isinstance(one, str)}
    )


def is_compiled(function):
    return any(
        isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "njit"
        for mark in function.decorator_list
    )


def sorts(file):
    """Sorts of numba's in compiled loops, which may be taken for one another."""
    return [
        (function.name, node.func.attr)
        for function in ast.walk(tree(file))
        if isinstance(function, ast.FunctionDef) and is_compiled(function)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"sort", "argsort", "median", "partition", "unique"}
    ]


def test_compiled_loops_sort_by_our_own_sort():
    assert not offences(sorts)
