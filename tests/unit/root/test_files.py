"""Atomic writes, locks and hashes of files."""

import errno
import multiprocessing
import os
import signal
import time
from hashlib import sha256
from pathlib import Path

import pytest

from unalike import UserError, files
from unalike.files import (
    allocate,
    atomic_write,
    check_writable,
    file_lock,
    remove_folder,
    sha256_file,
)


@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_file_gets_its_name_when_the_block_ends(tmp_path, before, fsync):
    path = tmp_path / "scores.csv"
    if before is not None:
        path.write_text(before)
    with atomic_write(path, fsync=fsync) as partial:
        assert partial.parent == tmp_path
        assert str(os.getpid()) in partial.name
        partial.write_text("new")
        assert (path.read_text() if path.exists() else None) == before
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    with pytest.raises(error), atomic_write(path) as partial:
        partial.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_writes_nothing_leaves_no_file(tmp_path):
    with atomic_write(tmp_path / "scores.csv"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_user_error_with_the_path(tmp_path):
    with (
        pytest.raises(UserError, match=r"Cannot write .*scores\.csv: No space left"),
        atomic_write(tmp_path / "scores.csv") as partial,
    ):
        partial.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with (
        pytest.raises(UserError, match="No such file or directory"),
        atomic_write(tmp_path / "no" / "scores.csv") as partial,
    ):
        partial.write_text("half")


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path, size):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(size))
    assert sha256_file(path) == sha256(path.read_bytes()).hexdigest()


def count_up(path, times):
    """Read a number and write the next one, which loses counts without a lock."""
    for _ in range(times):
        with file_lock(path):
            number = int(path.read_text())
            time.sleep(0.001)
            path.write_text(str(number + 1))


def test_one_process_at_a_time_has_the_lock(tmp_path):
    path = tmp_path / "number"
    path.write_text("0")
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=count_up, args=(path, 20)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert path.read_text() == "60"
    assert {one.name for one in tmp_path.iterdir()} == {"number", ".number.lock"}


def hold(path, ready):
    with file_lock(path):
        ready.set()
        time.sleep(60)


def test_a_killed_process_frees_its_lock(tmp_path):
    path = tmp_path / "number"
    path.write_text("0")
    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    process = fork.Process(target=hold, args=(path, ready))
    process.start()
    assert ready.wait(10)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    count_up(path, 1)
    assert path.read_text() == "1"


def test_the_lock_creates_its_folder(tmp_path):
    with file_lock(tmp_path / "new" / "number"):
        assert (tmp_path / "new" / ".number.lock").exists()


def test_a_lock_in_a_folder_that_is_a_file_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match=r"Cannot write .*file"),
        file_lock(tmp_path / "file" / "number"),
    ):
        pass


def test_a_folder_is_removed_with_those_of_killed_processes(tmp_path):
    for name in ("graph", ".graph.123.stale", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "array").write_text("1")
    remove_folder(tmp_path / "graph")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    remove_folder(tmp_path / "graph")


@pytest.mark.parametrize("system", ["linux", "macos"])
def test_allocated_files_have_disk_blocks(tmp_path, monkeypatch, system):
    if system == "macos":
        monkeypatch.delattr(os, "posix_fallocate")
    size = 3 * files.ZEROS_AT_ONCE + 5
    with (tmp_path / "file").open("wb") as file:
        file.write(b"head")
        allocate(file, size)
    status = (tmp_path / "file").stat()
    assert (tmp_path / "file").read_bytes() == b"head" + bytes(size)
    assert 512 * status.st_blocks >= size


def test_a_link_stays_a_link_to_the_new_file(tmp_path):
    (tmp_path / "disk").mkdir()
    path, target = tmp_path / "scores.csv", tmp_path / "disk" / "scores.csv"
    path.symlink_to(target)
    for text in ("first", "second"):
        check_writable(path)
        with atomic_write(path) as partial:
            partial.write_text(text)
        assert path.is_symlink()
        assert target.read_text() == text
    assert [*target.parent.iterdir()] == [target]


@pytest.mark.parametrize("check", [check_writable, lambda path: enter(path)])
def test_devices_pipes_and_loops_of_links_are_not_replaced(tmp_path, check):
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (pipe, Path("/dev/null"), loop):
        with pytest.raises(UserError, match="Cannot write"):
            check(path)
    assert pipe.is_fifo()
    assert Path("/dev/null").is_char_device()


def enter(path):
    with atomic_write(path) as partial:
        partial.write_text("new")
