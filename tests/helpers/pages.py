"""The pages of the documentation, and the blocks of code in them."""

import functools
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

from command_server import command
from forked_processes import child

from unalike import DATASETS
from unalike.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
STOPS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>"}
"""What ends a command inside a line of the shell."""


def blocks(page, language):
    """The blocks of one language in a page, in order, without their indentation."""
    text = page.read_text("utf-8")
    form = rf"^( *)```{language}\b[^\n]*\n(.*?)^ *```$"
    found = re.findall(form, text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", code, flags=re.M) for indent, code in found]


def commands(code):
    """The words of every `unalike …` in a block of a shell's lines."""
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, "#"
        words = [word for word in lexer if word != "$"]
        while words:
            stop = next((at for at, one in enumerate(words) if one in STOPS), None)
            command = words[:stop]
            if command[:1] == ["unalike"]:
                yield command[1:]
            words = [] if stop is None else words[stop + 1 :]


def spans(page):
    """Whole commands between backquotes; one word alone only names a command."""
    text = page.read_text("utf-8")
    found = re.findall(r"`(unalike [a-z]+\s[^`…]+)`", text)
    return [" ".join(span.split()) for span in found]


def parses(words, monkeypatch):
    """Does the command line take these words? What they ask for is not done."""
    if words[0] not in COMMANDS:
        return main(words) == 0
    module = import_module(f"unalike.cli.{words[0]}")

    @functools.wraps(module.command)
    def nothing(*given, **named):
        return None

    with monkeypatch.context() as patched:
        patched.setattr(module, "command", nothing)
        return main(words) == 0


def needs_data(script):
    """Does a script name a dataset whose files must be there?"""
    return bool({*re.findall(r"[\w-]+", script)} & {*DATASETS})


def environment(folder, **more):
    """That of a newcomer: nothing is known yet, and `unalike` is on the path."""
    here = Path(sys.executable).parent
    programs = [str(Path(command()).parent), str(here), os.environ["PATH"]]
    path = os.pathsep.join(programs)
    kept = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": path}
    return {**os.environ, **kept, **more}


def shell(script, folder, **more):
    """Run lines of a shell in a folder until one fails."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        check=False,
    )


def python(script, folder):
    """Run Python in an empty folder; what goes wrong, or nothing."""
    process = child(run_script, script, folder, environment(folder))
    process.join()
    complaint = (folder / "complaint.txt").read_text("utf-8")
    return complaint or "it failed" if process.exitcode else ""


def run_script(script, folder, known):
    """What the process does: the script is its main module, errors go to a file."""
    os.chdir(folder)
    os.environ.update(known, UNALIKE_DATA=str(folder / "data"))
    with (folder / "complaint.txt").open("w") as complaint:
        os.dup2(complaint.fileno(), 2)
    (folder / "page.py").write_text(script, "utf-8")
    with (folder / "said.txt").open("w") as said, redirect_stdout(said):
        runpy.run_path(str(folder / "page.py"), run_name="__main__")
