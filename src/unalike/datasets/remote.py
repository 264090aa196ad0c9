"""Raw files of datasets: paths, mirror URLs, and sha256 checksums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from unalike.errors import UserError
from unalike.files import sha256_file


@dataclass(frozen=True)
class RemoteFile:
    """A raw file that users copy into the data root, or that `fetch` downloads."""

    path: str
    """Its path under the data root."""
    mirrors: tuple[str, ...] = ()
    """URLs, best first; `archive.zip#member` is a file inside an archive."""
    other_paths: tuple[str, ...] = ()
    """Other paths under the root where users may have put it."""

    @property
    def checksum(self) -> Checksum | None:
        """The checksum that ships with unalike, if there is one."""
        return shipped_checksums().get(self.path)

    def find(self, root: Path) -> Path | None:
        paths = (root / path for path in (self.path, *self.other_paths))
        return next((path for path in paths if path.is_file()), None)

    def require(self, root: Path) -> Path:
        """The path of the file, or an error that says how to get it."""
        if path := self.find(root):
            return path
        raise UserError(
            f"There is no file {root / self.path}. {self.manual_download_hint(root)} "
            "Or let `unalike fetch` do so."
        )

    def manual_download_hint(self, root: Path) -> str:
        if not self.mirrors:
            return "It has no public URL: ask its authors and put it there."
        url, _, member = self.mirrors[0].partition("#")
        inside = f" (inside it: {member})" if member else ""
        return f"Get it from {url}{inside} and put it at {root / self.path}."


@dataclass(frozen=True)
class Checksum:
    """The size and sha256 of a file."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Checksum:
        return cls(path.stat().st_size, sha256_file(path))


@cache
def shipped_checksums() -> Mapping[str, Checksum]:
    """The checksums that ship with unalike, by the path of the file under the root."""
    text = files("unalike.datasets").joinpath("checksums.txt").read_text("utf-8")
    rows = (line.split("  ", 2) for line in text.splitlines())
    return {path: Checksum(int(size), digest) for digest, size, path in rows}


def github_url(repository: str, path: str, branch: str = "master") -> str:
    """The URL of a file in a public GitHub repository."""
    quoted = path.replace(" ", "%20")
    return f"https://raw.githubusercontent.com/{repository}/{branch}/{quoted}"


def linkx_url(path: str) -> str:
    """The URL of a data file in the repository of the LINKX authors."""
    return github_url("CUAI/Non-Homophily-Large-Scale", f"data/{path}")


def google_drive_url(file_id: str) -> str:
    """The URL of a file on Google Drive."""
    return f"https://drive.google.com/uc?export=download&id={file_id}"


def platonov_file(name: str) -> RemoteFile:
    """One of the files of Platonov et al. 2023."""
    repository = "yandex-research/heterophilous-graphs"
    mirror = github_url(repository, f"data/{name}.npz", "main")
    return RemoteFile(f"heterophilous/{name}.npz", (mirror,))
