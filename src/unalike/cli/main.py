"""`unalike COMMAND`: finds the command, runs it, turns errors into one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import version

from unalike.errors import UserError, lookup
from unalike.progress import listening

COMMANDS = {
    "list": "Show what there is to choose from.",
    "fetch": "Download the raw files of datasets and convert them.",
    "import": "Turn edge lists and node tables into a stored graph.",
    "crawl": "Make a graph of a wiki.",
    "advise": "Tell which method to try on a graph, and why.",
    "shard": "Divide a graph among processes, on disk.",
    "train": "Train a method on the splits of a dataset.",
    "predict": "Score new nodes by a saved model, and say why.",
    "tune": "Search the settings of correct and smooth.",
    "sweep": "Run what recipes ask for and is not done yet.",
    "results": "Copy results into a file, or out of one.",
    "measure": "Tell how homophilous graphs are.",
    "table": "Print a table of the paper, ours beside the printed numbers.",
    "figure": "Draw a figure of the paper.",
    "report": "Show all results on one page.",
    "bench": "Time the engine beside its peers.",
    "demo": "See unalike at work on a generated graph.",
}

COMMAND_LINE: ContextVar[Sequence[str]] = ContextVar("WORDS")
"""The command that runs and its arguments, for one that runs itself again."""

DONE, ERROR, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help", "help"):
        print(help_text())
        return DONE if given else USAGE
    if given[0] == "--version":
        print(f"unalike {version('unalike')}")
        return DONE
    try:
        lookup(COMMANDS, given[0], "command")
    except UserError as error:
        return print_error(str(error), USAGE)
    return run(given[0], given[1:])


def run(name: str, arguments: list[str]) -> int:
    """Run a command of the table with the rest of the command line."""
    # Threads that spin while they wait are twenty times slower on busy cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    COMMAND_LINE.set([name, *arguments])
    try:
        import tyro

        config = (
            tyro.conf.CascadeSubcommandArgs,
            tyro.conf.OmitArgPrefixes,
            tyro.conf.OmitSubcommandPrefixes,
            tyro.conf.FlagCreatePairsOff,
            tyro.conf.HelptextFromCommentsOff,
        )
        command = import_module(f"unalike.cli.{name}").command
        with listening(explain):
            tyro.cli(command, prog=f"unalike {name}", args=arguments, config=config)
        sys.stdout.flush()
    except UserError as error:
        return print_error(str(error), ERROR)
    except KeyboardInterrupt:
        return print_error("interrupted; what was finished is kept.", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else DONE
    return DONE


def explain(notice: str) -> None:
    """Print a notice to standard error, above the progress bar where there is one."""
    from unalike.cli.console import print_notes

    print_notes([notice])


def help_text() -> str:
    """The help of the whole program."""
    lines = [f"  {name:<10}{summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "usage: unalike COMMAND [options]",
            "",
            "Learning on graphs whose neighbours are unlike each other.",
            "",
            "commands:",
            *lines,
            "",
            "  unalike COMMAND --help   what a command does, its options, an example",
            "  unalike --version        the version",
        ]
    )


def print_error(what: str, status: int) -> int:
    """Say in one line what went wrong."""
    print(f"error: {' '.join(what.split())}", file=sys.stderr)
    return status
