"""The built wheel in an environment that has its dependencies and nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from contextlib import suppress
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distribution,
    distributions,
)
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD_FILES = ("pyproject.toml", "README.md", "LICENSE", "src")
NAME = re.compile(r"[A-Za-z0-9._-]+")
EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")

pytestmark = pytest.mark.slow


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program without Python's and unalike's variables; returns its output."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "UNALIKE_", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**own, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def required(package: Distribution, *extras: str) -> list[str]:
    """The names of the packages that a package needs."""
    lines = [(line, EXTRA.search(line)) for line in package.requires or []]
    return [
        NAME.match(line)[0]
        for line, extra in lines
        if extra is None or extra[1] in extras
    ]


def all_required(names: list[str]) -> set[str]:
    """The names of these packages and of all that they need, if installed here."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            with suppress(PackageNotFoundError):  # of another system
                names += required(distribution(name))
                found.add(name)
    return found


def link_packages(packages: set[str], site: Path) -> None:
    """Link the files of installed packages into another site-packages."""
    for package in packages:
        files = distribution(package).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            source, link = Path(distribution(package).locate_file(top)), site / top
            if source.exists() and not link.exists():
                link.symlink_to(source)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy of the source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in BUILD_FILES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    words = ("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(sys.executable, "-m", *words, "--wheel-dir", folder, ".", cwd=folder)
    (built,) = folder.glob("unalike-*.whl")
    return built


def install(wheel: Path, folder: Path, *extras: str) -> Path:
    """Install the wheel with its dependencies; returns the folder of programs."""
    venv.create(folder, with_pip=False)
    programs = folder / "bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python", "install")
    run(*pip, "--quiet", "--no-deps", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (installed,) = distributions(name="unalike", path=[str(site)])
    link_packages(all_required(required(installed, *extras)), site)
    return programs


def test_the_wheel_runs_with_its_dependencies_alone(wheel: Path, tmp_path: Path):
    programs = install(wheel, tmp_path / "environment")
    unalike, where = programs / "unalike", tmp_path / "work"
    where.mkdir()
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    absent = "import importlib.util as u; assert not u.find_spec('matplotlib')"
    run(programs / "python", "-c", absent, cwd=where)
    printed = run(unalike, "demo", "--out", "x[/x]y", cwd=where, **cache)
    assert "x[/x]y/edges.csv" in printed
    assert "note: no picture was drawn. Figures need matplotlib" in printed
    assert "LINKX combines LINK and MLP." in printed
    assert not (where / "x[/x]y" / "demo.png").exists()
    assert json.loads(run(unalike, "list", "methods", "--json", cwd=where))
    assert "texas" in run(unalike, "list", "datasets", cwd=where, **cache)
    assert "class homophily" in run(unalike, "measure", "x[/x]y/graph", cwd=where)
    assert "full-batch" in run(unalike, "table", "--help", cwd=where)


def test_the_wheel_writes_a_report_with_its_extra(wheel: Path, tmp_path: Path):
    programs = install(wheel, tmp_path / "environment", "report")
    unalike, where = programs / "unalike", tmp_path / "work"
    where.mkdir()
    runs = ROOT / "tests" / "frozen" / "export.jsonl.gz"
    run(unalike, "results", "import", runs, cwd=where)
    printed = run(unalike, "report", "--no-measures", cwd=where)
    assert "wrote site/index.html" in printed
    assert (where / "site" / "index.html").is_file()
