"""Processes that start at once, because one that has imported everything forks them."""

import multiprocessing
from collections.abc import Callable
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "unalike.datasets",
        "unalike.datasets.fetch",
        "unalike.experiments.sweep",
        "unalike.wiki.crawl",
        "unalike.wiki.dumps",
    ]
)


def child(work: Callable[..., Any], *arguments: Any) -> multiprocessing.Process:
    """A process that has begun to do some work."""
    process = CONTEXT.Process(target=work, args=arguments)
    process.start()
    return process
