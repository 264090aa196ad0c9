"""Write the tree of ARCHITECTURE.md: every file with the first line of its docstring.

python scripts/tree.py          rewrite ARCHITECTURE.md
python scripts/tree.py --check  exit with 1 if ARCHITECTURE.md is out of date
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- tree: made by `make tree` -->\n", "<!-- end of tree -->\n"
OTHERS = {
    "tests/": "tests by kind: unit, contracts, oracles, frozen, faults, cli, docs, gpu",
    "benchmarks/": "programs that measure speed and memory",
    "docs/": "the documentation, one file per page",
    "scripts/": "programs that write this tree and the numbers of the pages",
}


def first_line(file: Path) -> str:
    """The first line of a module's docstring, without its full stop."""
    docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return docstring.splitlines()[0].rstrip(".")


def branch(folder: Path, depth: int) -> list[str]:
    """The lines of a folder: its files, then its subfolders."""
    files = [file for file in sorted(folder.glob("*.py")) if file.stem != "__init__"]
    lines = [line(file.name, first_line(file), depth) for file in files]
    for package in sorted(folder.glob("*/__init__.py")):
        name = f"{package.parent.name}/"
        lines.append(line(name, first_line(package), depth))
        lines += branch(package.parent, depth + 1)
    return lines


def line(name: str, text: str, depth: int) -> str:
    """A name, indented by its depth, and its description."""
    return f"{'  ' * depth}{name:<{34 - 2 * depth}}{text}"


def tree() -> str:
    """The full tree as a block of Markdown."""
    source = ["src/unalike/", *branch(ROOT / "src" / "unalike", 1)]
    others = [line(name, text, 0) for name, text in OTHERS.items()]
    return "\n".join(["```text", *source, *others, "```", ""])


def main() -> int:
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = before + BEGIN + tree() + END + after
    if "--check" in sys.argv[1:]:
        return int(text != wanted)
    PAGE.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
