"""`RemoteFile`: path, mirror URLs, shipped sha256 (`checksums.txt`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest
from importlib.resources import files
from pathlib import Path

from unalike.errors import UserError

# Checksums: the size and sha256 of every raw file that was ever checked.


@dataclass(frozen=True)
class Checksum:
    """What tells one file from another."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Checksum:
        """The checksum of a file on disk."""
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            return cls(file.tell(), digest)


@cache
def shipped_checksums() -> Mapping[str, Checksum]:
    """The checksums that ship with unalike, by the file's place under the root."""
    text = files("unalike.datasets").joinpath("checksums.txt").read_text("utf-8")
    rows = (line.split("  ", 2) for line in text.splitlines())
    return {path: Checksum(int(size), digest) for digest, size, path in rows}


# Remote: one raw file of a dataset, where it lies and where it comes from.


@dataclass(frozen=True)
class RemoteFile:
    """A file that people copy into the data root, or that `fetch` downloads."""

    path: str
    """Its place under the data root."""
    mirrors: tuple[str, ...] = ()
    """Addresses, best first; `archive.zip#member` is a file inside an archive."""
    other_paths: tuple[str, ...] = ()
    """Other places under the root where people keep it."""

    @property
    def checksum(self) -> Checksum | None:
        """The checksum that ships with unalike, if the file was ever seen."""
        return shipped_checksums().get(self.path)

    def find(self, root: Path) -> Path | None:
        """The file, if it is there."""
        places = (root / place for place in (self.path, *self.other_paths))
        return next((place for place in places if place.is_file()), None)

    def require(self, root: Path) -> Path:
        """The file, or an error that says where to get it and where to put it."""
        if found := self.find(root):
            return found
        raise UserError(
            f"There is no file {root / self.path}. {self.manual_download_hint(root)} "
            "Or let `unalike fetch` do so."
        )

    def manual_download_hint(self, root: Path) -> str:
        """How to get the file by hand."""
        if not self.mirrors:
            return "It has no public address: ask its authors and put it there."
        address, _, member = self.mirrors[0].partition("#")
        inside = f" (inside it: {member})" if member else ""
        return f"Get it from {address}{inside} and put it at {root / self.path}."


def github_url(repository: str, path: str, branch: str = "master") -> str:
    """The address of a file in a public GitHub repository."""
    place = path.replace(" ", "%20")
    return f"https://raw.githubusercontent.com/{repository}/{branch}/{place}"


def linkx_url(path: str) -> str:
    """The address of a data file in the repository of the paper's authors."""
    return github_url("CUAI/Non-Homophily-Large-Scale", f"data/{path}")


def google_drive_url(identity: str) -> str:
    """The address of a file on Google Drive."""
    return f"https://drive.google.com/uc?export=download&id={identity}"


# The six small graphs of earlier work, in the format of geom-gcn.


def platonov_file(name: str) -> RemoteFile:
    """One of the files of Platonov et al. 2023."""
    repository = "yandex-research/heterophilous-graphs"
    mirror = github_url(repository, f"data/{name}.npz", "main")
    return RemoteFile(f"heterophilous/{name}.npz", (mirror,))
