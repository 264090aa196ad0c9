"""The machine: versions, commit and device that a result records."""

import subprocess

import pytest
import torch
from graphs import suiting, tasks_of

from unalike import LINK, Training
from unalike import device as devices

AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@b"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    path = tmp_path / "src" / "unalike" / "device.py"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.setattr(devices, "__file__", str(path))
    devices.commit.cache_clear()
    yield tmp_path
    devices.commit.cache_clear()


def git(tree, *words):
    asked = ["git", "-C", tree, *AUTHOR, *words]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_an_installed_package_has_no_commit(tree, monkeypatch):
    monkeypatch.delenv("UNALIKE_COMMIT", raising=False)
    assert devices.commit() == ""


def test_a_copy_without_git_takes_the_commit_of_the_environment(tree, monkeypatch):
    monkeypatch.setenv("UNALIKE_COMMIT", "abc123")
    assert devices.commit() == "abc123"


def test_the_environment_does_not_replace_the_commit_of_git(tree, monkeypatch):
    monkeypatch.setenv("UNALIKE_COMMIT", "abc123")
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "first")
    assert devices.commit() == git(tree, "rev-parse", "HEAD")


def test_files_that_differ_from_the_commit_are_reported(tree):
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "first")
    git(tree, "tag", "-a", "v1", "-m", "one")
    first = git(tree, "rev-parse", "HEAD")
    assert devices.commit() == first
    devices.commit.cache_clear()
    (tree / "src" / "unalike" / "device.py").write_text("changed")
    assert devices.commit() == f"{first}+changes"


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs; what a process takes of them is noted."""
    taken = []
    for name, answer in {
        "is_available": lambda: True,
        "device_count": lambda: 2,
        "set_device": lambda device: taken.append(device),
        "set_per_process_memory_fraction": lambda share, device: taken.append(share),
    }.items():
        monkeypatch.setattr(devices.torch.cuda, name, answer)
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
def test_processes_share_gpus(device, job, jobs, own, share, gpus):
    assert devices.device_of_worker(device, job, jobs) == own
    assert gpus == [own, pytest.approx(share * devices.TORCH_MEMORY_SHARE)]


def test_processes_share_no_memory_of_a_processor(gpus):
    assert devices.device_of_worker("cpu", 1, 2) == "cpu"
    assert not gpus


def test_programs_are_loaded_for_the_chosen_gpu(gpus):
    assert devices.choose_device("cuda") == "cuda"
    assert not gpus
    assert devices.choose_device("cuda:1") == "cuda:1"
    assert gpus == ["cuda:1"]


def test_training_on_a_cpu_leaves_gpus_alone(monkeypatch):
    touched = []
    monkeypatch.setattr(devices.torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(devices.torch.cuda, "get_rng_state", touched.append)
    monkeypatch.setattr(devices.torch.cuda, "set_rng_state", lambda *_: None)
    (task,) = tasks_of(suiting())
    before = torch.get_rng_state()
    LINK(training=Training(epochs=1)).solve(task)
    assert not touched
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.skipif(not (devices.PROC / "clear_refs").exists(), reason="not Linux")
def test_a_later_run_has_a_peak_of_memory_of_its_own():
    devices.reset_peak_memory("cpu")
    base = devices.peak_memory_mb("cpu")
    torch.ones(2**26)
    assert devices.peak_memory_mb("cpu") > base + 200
    devices.reset_peak_memory("cpu")
    assert devices.peak_memory_mb("cpu") < base + 100
