"""The source files of unalike, parsed."""

import ast
from functools import cache
from pathlib import Path

import unalike

ROOT = Path(unalike.__file__).parent
FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


@cache
def text(file):
    return (ROOT / file).read_text("utf-8")


@cache
def tree(file):
    return ast.parse(text(file))


def family(module):
    """The part of unalike a module belongs to: `datasets` of `datasets.twins`."""
    return module.removesuffix(".py").replace("/", ".").split(".")[0]


def imported(file):
    """Every module that a file imports anywhere, or imports a name from."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written out"
            yield from origins(node)


def origins(node):
    """Where the names of one import come from; those of `unalike` are its modules."""
    if node.module != "unalike":
        yield node.module
        return
    for alias in node.names:
        home = unalike.EXPORTS.get(alias.name, alias.name)
        yield f"unalike.{home}"


def modules(package):
    """The modules of a package, by name."""
    folder = ROOT.joinpath(*package.split("."))
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}
