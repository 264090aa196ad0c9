"""Launch: the same command once more, in several processes of this machine."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from uuid import uuid4

from unalike.errors import UserError

TERMINATE_SECONDS = 5
"""How long processes may take to stop when one of them is lost."""


def launch(words: Sequence[str], processes: int, *, module: str = "unalike") -> int:
    """Run a module with these words in several processes; the status they end with.

    They are torch's to start, to watch and to stop, as under `torchrun`.
    """
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        shutdown_timeout=TERMINATE_SECONDS,
    )
    try:
        elastic_launch(config, sys.executable)("-m", module, *words)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:
            raise UserError(
                f"Process {rank} of {processes} was killed by signal "
                f"{-failure.exitcode}; the others were stopped."
            ) from None
        return failure.exitcode
    except SignalException:
        raise KeyboardInterrupt from None
    return 0
