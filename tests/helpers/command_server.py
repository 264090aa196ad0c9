"""`unalike` without the seconds of its imports, for tests that need real processes.

A server that has imported every command forks a process for each one that is asked
for. The client is a program that stands for `unalike`: the process gets its arguments,
folder, environment, file size limit and standard streams, receives its signals, dies
with it and gives it its exit status.
"""

import atexit
import gc
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

HEADER = 8
"""Bytes that hold the length of a request."""
STATUS = 4
"""Bytes of a number in an answer: the process id, then the exit status."""
BROKEN_OUTPUT = 120
"""The exit status of an interpreter that cannot write what is left."""

CLIENT = """#!{python} -IS
import json, os, resource, signal, socket, sys

server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
asked = [sys.argv[1:], os.getcwd(), dict(os.environ), limit]
request = json.dumps(asked).encode()
size = len(request).to_bytes({header}, "big")
socket.send_fds(server, [size], [0, 1, 2])
server.sendall(request)
process = int.from_bytes(server.recv({status}, socket.MSG_WAITALL), "big")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(process, number))
status = int.from_bytes(
    server.recv({status}, socket.MSG_WAITALL), "big", signed=True
)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@cache
def command() -> str:
    """The path of a program that does what `unalike` does; its server is started."""
    folder = tempfile.TemporaryDirectory(prefix="unalike-commands-")
    address = str(Path(folder.name) / "socket")
    program = Path(folder.name) / "unalike"
    words = {"python": sys.executable, "header": HEADER, "status": STATUS}
    program.write_text(CLIENT.format(address=address, **words), "utf-8")
    program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )

    def stop() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(stop)
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError("the server of commands did not start")
    return str(program)


def serve(address: str) -> None:
    """Fork a process for each connection until the standard input is closed."""
    from importlib import import_module

    from unalike.cli.main import COMMANDS
    from unalike.data import numba_utils

    import_module("tyro")
    numba_utils.NOTICE.given = True  # whether something is compiled depends on caches
    for name in COMMANDS:
        import_module(f"unalike.cli.{name}")
    gc.freeze()  # what is imported is neither visited nor copied by the forks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for attendants
    with socket.socket(socket.AF_UNIX) as server, selectors.DefaultSelector() as events:
        server.bind(address)
        server.listen()
        events.register(server, selectors.EVENT_READ)
        events.register(0, selectors.EVENT_READ)
        os.write(1, b"ready\n")
        while not any(key.fileobj == 0 for key, _ in events.select()):
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                attend(client)
            client.close()


def attend(client: socket.socket) -> None:
    """Run the command of one client, and end it when the client goes away."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(client, HEADER, 3)
    request = client.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
    process = os.fork()
    if process == 0:
        client.close()
        run(streams, *json.loads(request))
    for stream in streams:
        os.close(stream)
    client.sendall(process.to_bytes(STATUS, "big"))
    with selectors.DefaultSelector() as events:
        events.register(client, selectors.EVENT_READ)
        events.register(os.pidfd_open(process), selectors.EVENT_READ)
        if any(key.fileobj is client for key, _ in events.select()):
            os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        client.sendall(status.to_bytes(STATUS, "big", signed=True))
    finally:
        os._exit(0)


def run(
    streams: list[int],
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    limit: tuple[int, int],
) -> None:
    """Do in this process what `unalike` does with these arguments."""
    import torch

    from unalike.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_FSIZE, tuple(limit))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if "OMP_NUM_THREADS" in environment:  # otherwise read before the fork
        torch.set_num_threads(int(environment["OMP_NUM_THREADS"]))
    sys.argv = ["unalike", *arguments]
    leave(main())


def leave(status: int) -> None:
    """End as an interpreter does, but leave its memory to the system."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        status = status or BROKEN_OUTPUT
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
