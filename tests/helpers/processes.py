"""Run a function in several processes that share a process group."""

import os
import pickle
import socket
import tempfile
from pathlib import Path

import torch
from forked_processes import child

from unalike.training.distributed import init_distributed

SECONDS = 120


def together(size, work, *arguments, seconds=SECONDS):
    """The results of a function in the processes of a group, by rank."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        answers = [Path(folder) / str(rank) for rank in range(size)]
        processes = [
            child(join_and_work, rank, size, port, answer, work, *arguments)
            for rank, answer in enumerate(answers)
        ]
        try:
            for process in processes:
                process.join(seconds)
        finally:
            for process in processes:
                process.kill()
        return [
            pickle.loads(answer.read_bytes()) if answer.exists() else None
            for answer in answers
        ]


def join_and_work(rank, size, port, answer, work, *arguments):
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    with init_distributed():
        result = work(*arguments)
    answer.write_bytes(pickle.dumps(result))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
