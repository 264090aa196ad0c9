"""`unalike COMMAND`: run a command and print its errors in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import version

from unalike.errors import UserError, lookup
from unalike.formatting import printable
from unalike.progress import listening

COMMANDS = {
    "list": "List datasets, methods, samplers, measures and metrics.",
    "fetch": "Download the raw files of datasets and convert them.",
    "import": "Convert edge lists and node tables to a stored graph.",
    "crawl": "Make a graph of a wiki.",
    "advise": "Recommend methods for a graph.",
    "shard": "Store a graph in shards for several processes.",
    "train": "Train a method on the splits of a dataset.",
    "predict": "Score nodes by a saved model, and explain the scores.",
    "serve": "Answer HTTP requests with the scores of a saved model.",
    "tune": "Search the hyperparameters of a method.",
    "sweep": "Run the experiments of recipes that are not done yet.",
    "results": "Export results to a file, or import them.",
    "measure": "Measure the homophily of graphs.",
    "views": "Write leak-free columns per node for other learners.",
    "table": "Print a table of the paper with our numbers.",
    "figure": "Draw a figure of the paper.",
    "report": "Show all results on one page.",
    "bench": "Time epochs of unalike and of other libraries.",
    "demo": "Import, measure and train on a generated graph.",
}

COMMAND_LINE: ContextVar[Sequence[str]] = ContextVar("COMMAND_LINE")
"""The running command and its arguments, for commands that launch themselves again."""

DONE, ERROR, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    if not args or args[0] in ("-h", "--help", "help"):
        print(help_text())
        return DONE if args else USAGE
    if args[0] == "--version":
        print(f"unalike {version('unalike')}")
        return DONE
    try:
        lookup(COMMANDS, args[0], "command")
    except UserError as error:
        return print_error(str(error), USAGE)
    return run(args[0], args[1:])


def run(name: str, arguments: list[str]) -> int:
    """Run a command with its arguments and return the exit status."""
    # Spinning OpenMP threads are twenty times slower on busy cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # torch's profiler writes a line whenever it starts or stops.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
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
        from unalike.cli.console import print_notes

        command = import_module(f"unalike.cli.{name}").command
        with listening(print_notes):
            tyro.cli(command, prog=f"unalike {name}", args=arguments, config=config)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return print_error("interrupted; finished results are saved.", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            return print_error(exit_.code, ERROR)
        return exit_.code or DONE
    except Exception as error:
        if (text := explained(error)) is None:
            raise
        return print_error(text, ERROR)
    return DONE


def explained(error: Exception) -> str | None:
    """What to say about an error that users can solve; None for other errors."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object[:100]!r} is not Unicode text."
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return "out of memory; use smaller sizes or batches."
    if isinstance(error, OSError):
        file = "" if error.filename is None else f"{error.filename}: "
        return f"{file}{error.strerror or error}."
    return None


def help_text() -> str:
    """The text of `unalike --help`."""
    commands = "\n".join(f"  {name:<10}{does}" for name, does in COMMANDS.items())
    return f"""usage: unalike COMMAND [options]

Learning on graphs whose neighbours are unlike each other.

commands:
{commands}

  unalike COMMAND --help   what a command does, its options, an example
  unalike --version        the version"""


def print_error(message: str, status: int) -> int:
    """Print an error in one line and return the exit status."""
    print(f"error: {printable(' '.join(message.split()))}", file=sys.stderr)
    return status
