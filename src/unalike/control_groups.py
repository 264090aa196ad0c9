"""Control groups: where Linux notes what containers and jobs may use."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def own_groups() -> Iterator[tuple[str, str]]:
    """The groups of this process, each behind the controllers that it is about."""
    for line in OWN.read_text().splitlines() if OWN.exists() else []:
        _, controllers, group = line.split(":", 2)
        yield controllers, group


def around(root: Path, group: str) -> Iterator[Path]:
    """The folder of a group, and those of the groups around it."""
    inner = root / group.strip("/")
    yield from (inner, *inner.parents)
