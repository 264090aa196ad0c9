"""`unalike crawl`, from the command line to graphs that other commands read."""

import json
import os
import signal
import subprocess
import time

import dump_files
import pytest
from command_server import command
from fake_wiki import FakeWiki
from wiki_proxy import fronting

from unalike.cli.main import main

WIKI = FakeWiki(
    {f"Page {n}": [f"Page {(n + k * k) % 40}" for k in range(1, 6)] for n in range(40)},
    {"Front page": "Page 1"},
)


def run(capsys, *words):
    status = main(["crawl", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_graph_of_a_crawl_works_with_other_commands(tmp_path, capsys):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("page 1 0 0\narticle 0 1 0\n")
    out = tmp_path / "graph"
    with fronting(WIKI) as front:
        arguments = ["--api", front.address, "--start", "front page", "--pages", 30]
        more = ["--rate", 0, "--contact", "me@example.org", "--vectors", vectors]
        status, output, err = run(capsys, *arguments, *more, "--out", out)
        assert (status, err) == (0, "")
        count = len(front.requests)
        status, json_output, _ = run(
            capsys,
            *("--collection", f"{out}.collection", "--out", tmp_path / "again"),
            *("--style", "paper", "--classes", 2, "--json"),
        )
        assert status == 0 and len(front.requests) == count
    assert "30 articles" in output and "6 features, 5 classes" in output
    about = json.loads(json_output)
    assert about["num_nodes"] == 30 and about["num_features"] == 0
    assert about["counts"]["pages"] == 30 and about["num_classes"] == 2
    assert main(["measure", str(out), "--json"]) == 0
    training = ["linkx", "--splits", "0", "--epochs", "2", "--hidden", "4"]
    assert main(["train", str(out), *training]) == 0
    assert main(["measure", str(tmp_path / "again")]) == 0


@pytest.mark.long
def test_dumps_are_read_into_a_graph(tmp_path, capsys):
    wiki = {"A": ["B", "C", "Nowhere"], "B": ["A"], "C": "D", "D": ["A", "B"]}
    dump_files.write(wiki, tmp_path / "dumps")
    arguments = ["--dumps", tmp_path / "dumps"]
    status, output, err = run(capsys, *arguments, "--out", tmp_path / "all", "--json")
    about = json.loads(output)
    assert status == 0 and "page views" in err
    assert (about["num_nodes"], about["num_edges"]) == (3, 5)
    assert (about["counts"]["aliases"], about["counts"]["missing"]) == (1, 1)
    near = ["--start", "B", "--pages", 2, "--out", tmp_path / "near", "--json"]
    assert json.loads(run(capsys, *arguments, *near)[1])["num_nodes"] == 2


def test_missing_extensions_are_printed_once(tmp_path, capsys):
    bare = FakeWiki(WIKI.articles, WIKI.redirects, extras=())
    with fronting(bare) as front:
        arguments = [
            "--api",
            front.address,
            "--start",
            "Page 1",
            "--pages",
            5,
            "--rate",
            0,
        ]
        status, _, err = run(capsys, *arguments, "--out", tmp_path / "g")
    assert status == 0
    for part in ("TextExtracts", "PageViewInfo", "--contact", "no features"):
        assert err.count(part) == 1


def test_invalid_arguments_end_in_one_line_without_a_request(tmp_path, capsys):
    (tmp_path / "there").mkdir()
    with fronting(WIKI) as front:
        api = ["--api", front.address]
        out = ["--out", tmp_path / "g"]
        for words, part in [
            ([*api, "--start", "A", "--pages", 1], "--out"),
            ([*api, "--out", tmp_path / "there"], "exists already"),
            (out, "--collection"),
            ([*api, *out, "--dumps", tmp_path], "not both"),
            ([*api, *out, "--pages", 1], "--start"),
            ([*api, *out, "--start", "A"], "--pages"),
            ([*api, *out, "--start", "A", "--pages", 1, "--rate", -1], "rate"),
            ([*api, *out, "--start", "A", "--pages", 1, "--at-once", 0], "at once"),
            ([*api, *out, "--start", "A", "--pages", 1, "--style", "odd"], "style"),
            ([*api, *out, "--start", "A", "--pages", 1, "--vectors", "no"], "vectors"),
        ]:
            status, output, err = run(capsys, *words)
            assert (status, output) == (1, "") and part in err, err
            assert err.startswith("error: ") and err.count("\n") == 1
        assert not front.requests


def test_an_interrupted_crawl_resumes(tmp_path, capsys):
    out = tmp_path / "g"
    with fronting(WIKI) as front:
        arguments = ["--api", front.address, "--start", "Page 1", "--pages", "30"]
        words = [*arguments, "--out", str(out), "--at-once", "2", "--contact", "me"]
        front.pause = 5.0
        process = subprocess.Popen(
            [command(), "crawl", *words],
            stderr=subprocess.PIPE,
            text=True,
        )
        while not front.requests:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130 and "interrupted" in err
        front.pause = 0.0
        assert run(capsys, *words, "--rate", 0)[0] == 0
