"""Remote: one raw file of a dataset, where it lies and where it comes from."""

from dataclasses import dataclass
from pathlib import Path

from unalike.datasets.checksum import Checksum, known_checksums
from unalike.errors import UserError


@dataclass(frozen=True)
class Remote:
    """A file that people copy into the data root, or that `fetch` downloads."""

    path: str
    """Its place under the data root."""
    mirrors: tuple[str, ...] = ()
    """Addresses, best first; `archive.zip#member` is a file inside an archive."""
    also: tuple[str, ...] = ()
    """Other places under the root where people keep it."""

    @property
    def checksum(self) -> Checksum | None:
        """The checksum that ships with unalike, if the file was ever seen."""
        return known_checksums().get(self.path)

    def find(self, root: Path) -> Path | None:
        """The file, if it is there."""
        places = (root / place for place in (self.path, *self.also))
        return next((place for place in places if place.is_file()), None)

    def at(self, root: Path) -> Path:
        """The file, or an error that says where to get it and where to put it."""
        if found := self.find(root):
            return found
        raise UserError(
            f"There is no file {root / self.path}. {self.advice(root)} "
            "Or let `unalike fetch` do so."
        )

    def advice(self, root: Path) -> str:
        """How to get the file by hand."""
        if not self.mirrors:
            return "It has no public address: ask its authors and put it there."
        address, _, member = self.mirrors[0].partition("#")
        inside = f" (inside it: {member})" if member else ""
        return f"Get it from {address}{inside} and put it at {root / self.path}."


def github(repository: str, path: str, branch: str = "master") -> str:
    """The address of a file in a public GitHub repository."""
    place = path.replace(" ", "%20")
    return f"https://raw.githubusercontent.com/{repository}/{branch}/{place}"


def authors(path: str) -> str:
    """The address of a data file in the repository of the paper's authors."""
    return github("CUAI/Non-Homophily-Large-Scale", f"data/{path}")


def drive(identity: str) -> str:
    """The address of a file on Google Drive."""
    return f"https://drive.google.com/uc?export=download&id={identity}"
