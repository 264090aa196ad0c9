"""Hosts for a test: network namespaces with cables to one switch."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NETWORK = "10.77.0"
CABLE = "cable"
# A host has its own name and knows those of the others; the files are shared.
BECOME = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'


def why_not() -> str:
    """Why there can be no namespaces here; empty if there can."""
    missing = [name for name in ("ip", "unshare") if not shutil.which(name)]
    if missing:
        return f"no {' and no '.join(missing)}; Debian's iproute2 and util-linux do"
    if os.getuid() != 0:
        return "only root makes network namespaces"
    try:
        with hosts(1) as (host,):
            host.run("true")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted ({error.stderr.strip()})"
    return ""


def _ip(*words: str) -> str:
    output = subprocess.run(
        ["ip", *words], check=True, capture_output=True, text=True, timeout=60
    )
    return output.stdout


@dataclass(frozen=True)
class Host:
    """A namespace with a name, an address and a cable that can be cut."""

    name: str
    address: str
    space: str
    switch: str
    names: Path

    def words(self, *command: str) -> list[str]:
        """A command line that runs a command on this host."""
        enter = ["ip", "netns", "exec", self.space, "unshare", "--uts", "--mount"]
        become = ["sh", "-c", BECOME, "sh", self.name, str(self.names)]
        return [*enter, *become, *command]

    def run(self, *command: str) -> None:
        """Run a command on this host, to its end."""
        subprocess.run(
            self.words(*command), check=True, capture_output=True, text=True, timeout=60
        )

    def start(self, *command: str, **how: Any) -> subprocess.Popen[str]:
        """A command that has begun on this host; it ends when the host goes."""
        return subprocess.Popen(self.words(*command), text=True, **how)

    def cut(self) -> None:
        """Pull the cable out: nothing arrives any more, without an error."""
        _ip("-n", self.switch, "link", "set", self.name, "down")

    def heal(self) -> None:
        """Put the cable back."""
        _ip("-n", self.switch, "link", "set", self.name, "up")

    def processes(self) -> list[int]:
        """Whatever runs on this host."""
        return [int(number) for number in _ip("netns", "pids", self.space).split()]


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts on one network, which go with all that runs on them."""
    mark = f"unalike-{os.getpid()}"
    switch, made = f"{mark}-switch", []
    with TemporaryDirectory() as folder:
        names = Path(folder) / "hosts"
        found = [
            Host(f"host{n}", f"{NETWORK}.{n}", f"{mark}-{n}", switch, names)
            for n in range(1, count + 1)
        ]
        known = "".join(f"{host.address} {host.name}\n" for host in found)
        names.write_text(f"127.0.0.1 localhost\n{known}")
        try:
            for space in (switch, *(host.space for host in found)):
                _ip("netns", "add", space)
                made.append(space)
            _wire(switch, found)
            yield found
        finally:
            _remove(made, found)


def _wire(switch: str, found: Sequence[Host]) -> None:
    _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
    _ip("-n", switch, "link", "set", "bridge", "up")
    for host in found:
        own = ["peer", "name", CABLE, "netns", host.space]
        _ip("-n", switch, "link", "add", host.name, "type", "veth", *own)
        _ip("-n", switch, "link", "set", host.name, "master", "bridge", "up")
        _ip("-n", host.space, "address", "add", f"{host.address}/24", "dev", CABLE)
        for name in ("lo", CABLE):
            _ip("-n", host.space, "link", "set", name, "up")


def _remove(made: Sequence[str], found: Sequence[Host]) -> None:
    for host in found:
        if host.space in made:
            for process in host.processes():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    for space in made:
        _ip("netns", "delete", space)
