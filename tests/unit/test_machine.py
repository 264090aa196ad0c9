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


@pytest.fixture
def cards(monkeypatch):
    """Two cards; what a process takes of them is noted."""
    taken = []
    for name, answer in {
        "is_available": lambda: True,
        "device_count": lambda: 2,
        "set_device": lambda device: taken.append(device),
        "set_per_process_memory_fraction": lambda share, device: taken.append(share),
    }.items():
        monkeypatch.setattr(machine.torch.cuda, name, answer)
    return taken


@pytest.mark.parametrize(
    ("device", "job", "jobs", "own", "share"),
    [
        ("cuda", 0, 1, "cuda:0", 1),
        ("cuda", 1, 2, "cuda:1", 1),
        ("cuda", 2, 3, "cuda:0", 1 / 2),
        ("cuda:1", 2, 3, "cuda:1", 1 / 3),
    ],
)
def test_processes_share_cards(device, job, jobs, own, share, cards):
    assert machine.share_device(device, job, jobs) == own
    assert cards == [own, pytest.approx(share * machine.COUNTED)]


def test_processes_share_no_memory_of_a_processor(cards):
    assert machine.share_device("cpu", 1, 2) == "cpu"
    assert not cards


def test_programs_are_loaded_for_the_card_that_was_chosen(cards):
    assert machine.choose_device("cuda") == "cuda"
    assert not cards
    assert machine.choose_device("cuda:1") == "cuda:1"
    assert cards == ["cuda:1"]
