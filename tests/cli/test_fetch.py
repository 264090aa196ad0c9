"""`unalike fetch` from a local server, also when the process is killed."""

import io
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from forked_processes import child
from loopback import Site, serving

from unalike import DATASETS, verify_graph
from unalike.cli.main import main
from unalike.datasets.fetch import fetch_file
from unalike.datasets.remote import RemoteFile

PATH = "heterophilous/questions.npz"


@pytest.fixture
def site():
    with serving() as site:
        yield site


def graph_file(nodes: int) -> bytes:
    ids = np.arange(nodes)
    masks = np.stack([ids % 3 == part for part in range(3)])[:, None]
    file = io.BytesIO()
    np.savez(
        file,
        node_features=np.random.default_rng(0).random((nodes, 2), np.float32),
        node_labels=ids % 2,
        edges=np.stack([ids, (ids + 1) % nodes], 1),
        **dict(zip(("train_masks", "val_masks", "test_masks"), masks, strict=True)),
    )
    return file.getvalue()


@pytest.fixture
def questions(monkeypatch, site: Site):
    """The dataset `questions` with its file on the local server."""

    def serve(body: bytes, **options: object) -> None:
        file = RemoteFile(PATH, (site.put("/questions.npz", body, **options),))
        dataset = replace(DATASETS["questions"], files=(file,), counts=None)
        monkeypatch.setitem(DATASETS, "questions", dataset)

    return serve


def test_fetch_downloads_and_converts(tmp_path: Path, questions, capsys):
    questions(graph_file(9), breaks=[1000])
    assert main(["fetch", "questions", "--data", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    (document,) = json.loads(out)
    assert (document["num_nodes"], document["num_edges"], document["num_classes"]) == (
        9,
        9,
        2,
    )
    assert document["files"][0]["downloaded"]
    assert not document["files"][0]["known"]
    verify_graph(Path(document["stored"]))
    assert err == ""


def test_fetch_prints_a_summary_and_a_note_about_missing_checksums(
    tmp_path: Path, questions, capsys
):
    questions(graph_file(9))
    assert main(["fetch", "questions", "--data", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("questions: 1 of 1 files downloaded, 9 nodes, 9 edges")
    assert "no checksum" in err
    assert main(["fetch", "questions", "--data", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "0 of 1 files downloaded" in out
    assert err == ""


def test_fetch_with_half_precision_features(tmp_path: Path, questions, capsys):
    questions(graph_file(9))
    assert main(["fetch", "questions", "--data", str(tmp_path), "--half"]) == 0
    document = json.loads(
        (tmp_path / "stored" / "questions" / "graph.json").read_text()
    )
    assert document["arrays"]["features"]["dtype"] == "float16"


def test_a_graph_with_other_counts_is_an_error(
    tmp_path: Path, questions, monkeypatch, capsys
):
    counts = DATASETS["questions"].counts
    questions(graph_file(9))
    dataset = replace(DATASETS["questions"], counts=counts)
    monkeypatch.setitem(DATASETS, "questions", dataset)
    assert main(["fetch", "questions", "--data", str(tmp_path)]) == 1
    assert "num_nodes is 9 instead of 48921" in capsys.readouterr().err


def test_a_file_that_its_reader_refuses_leaves_no_checksum(
    tmp_path: Path, questions, capsys
):
    wrong = io.BytesIO()
    np.savez(wrong, edges=np.zeros(3))
    questions(wrong.getvalue())
    assert main(["fetch", "questions", "--data", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert f"remove {tmp_path / PATH} and fetch again." in err
    assert err.count("\n") == 1
    assert not (tmp_path / "hashes.json").exists()
    (tmp_path / PATH).unlink()
    questions(graph_file(9))
    assert main(["fetch", "questions", "--data", str(tmp_path)]) == 0
    assert (tmp_path / "hashes.json").exists()


def test_without_network_the_error_has_the_manual_download(
    tmp_path: Path, questions, monkeypatch, capsys
):
    questions(b"")
    file = replace(DATASETS["questions"].files[0], mirrors=("http://no.invalid/file",))
    dataset = replace(DATASETS["questions"], files=(file,))
    monkeypatch.setitem(DATASETS, "questions", dataset)
    assert main(["fetch", "questions", "--data", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"from http://no.invalid/file and put it at {tmp_path / PATH}" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["oeis"], "never released"),
        (["penn49"], "Did you mean 'penn94'?"),
        ([], "Name a dataset"),
    ],
)
def test_wrong_names_are_errors(
    tmp_path: Path, arguments: list[str], message: str, capsys
):
    assert main(["fetch", *arguments, "--data", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_existing_real_files_are_verified(data: Path, tmp_path: Path, capsys):
    (tmp_path / "facebook100").symlink_to(data / "facebook100")
    assert main(["fetch", "reed98", "--data", str(tmp_path), "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert document["files"][0]["known"]
    assert document["num_edges"] == 18_812


def test_killed_downloads_leave_no_wrong_file(tmp_path: Path, site: Site):
    body = graph_file(20_000)
    file = RemoteFile(PATH, (site.put("/file", body, pause=0.002),))
    rng = np.random.default_rng(0)
    target = tmp_path / PATH
    resumed = 0
    for _ in range(5):
        process = child(fetch_file, file, tmp_path)
        time.sleep(rng.uniform(0.05, 0.2))
        process.kill()
        process.join()
        assert not target.exists() or target.read_bytes() == body
        resumed += any(span for _, span in site.asked)
    site.pages["/file"].pause = 0
    assert fetch_file(file, tmp_path).path.read_bytes() == body
    assert resumed


FETCH = """
import sys
from dataclasses import replace
from unalike.cli.main import main
from unalike.datasets import DATASETS
from unalike.datasets.remote import RemoteFile
root, path, url = sys.argv[1:]
file = RemoteFile(path, (url,))
old = DATASETS["questions"]
DATASETS["questions"] = replace(old, files=(file,), counts=None)
print("ready", flush=True)
sys.exit(main(["fetch", "questions", "--data", root]))
"""


@pytest.mark.slow
def test_the_command_can_be_killed_at_any_time(tmp_path: Path, site: Site):
    body = graph_file(60_000)
    url = site.put("/file", body, pause=0.003)
    rng = np.random.default_rng(1)
    target, stored = tmp_path / PATH, tmp_path / "stored" / "questions"
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", FETCH, str(tmp_path), PATH, url],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 1.5))
        process.kill()
        process.communicate()
        assert not target.exists() or target.read_bytes() == body
        if stored.exists():
            assert verify_graph(stored).load().num_nodes == 60_000
            target.unlink(missing_ok=True)
