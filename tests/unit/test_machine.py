"""The machine: what a result tells of the program that made it."""

import subprocess

import pytest

from unalike.experiments import machine

AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@b"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    place = tmp_path / "src" / "unalike" / "experiments" / "machine.py"
    place.parent.mkdir(parents=True)
    place.write_text("")
    monkeypatch.setattr(machine, "__file__", str(place))
    machine.commit.cache_clear()
    yield tmp_path
    machine.commit.cache_clear()


def git(tree, *words):
    asked = ["git", "-C", tree, *AUTHOR, *words]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_an_installed_package_has_no_commit(tree):
    assert machine.commit() == ""


def test_files_that_differ_from_the_commit_are_told(tree):
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "first")
    git(tree, "tag", "-a", "v1", "-m", "one")
    first = git(tree, "rev-parse", "HEAD")
    assert machine.commit() == first
    machine.commit.cache_clear()
    (tree / "src" / "unalike" / "experiments" / "machine.py").write_text("changed")
    assert machine.commit() == f"{first}+changes"
