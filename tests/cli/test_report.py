"""`unalike report`: a site from a database, in a folder or on an address."""

import json

import pytest
from report_fixtures import only_our_table, store_some

from unalike.cli.main import main
from unalike.reports.site import datasets, server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    only_our_table(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store_some("sqlite:///results.db")
    return tmp_path


@pytest.mark.long
def test_a_site_is_written(folder, capsys):
    assert main(["report", "--no-measures"]) == 0
    output = capsys.readouterr().out
    assert output.startswith(
        "wrote site/index.html: 18 runs; 9 cells filled, 2 empty; "
    )
    assert (folder / "site" / "index.html").is_file()


def test_one_document_tells_paths_and_counts(folder, capsys):
    assert main(["report", "--no-measures", "--out", "here", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output == {
        "file": "here/index.html",
        "runs": 18,
        "tables": 2,
        "cells": 9,
        "missing": 2,
        "failures": 3,
        "datasets": 0,
    }


def test_datasets_at_hand_are_measured_once(folder, data, capsys, monkeypatch):
    (folder / "few").mkdir()
    (folder / "few" / "geom-gcn").symlink_to(data / "geom-gcn")
    words = ["report", "--data", "few", "--json"]
    assert main(words) == 0
    count = json.loads(capsys.readouterr().out)["datasets"]
    assert count >= 4
    monkeypatch.setattr(datasets, "measure_document", None)
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["datasets"] == count


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--results", "sqlite:///no.db"], "There is no results database at sqlite"),
        (["--out", "results.db"], "results.db is a file; name a folder with --out."),
        (["--out", "."], ". is not empty and holds no report; name another"),
        (["--settings", "some"], "No choice of settings 'some'."),
        (["--serve", "--port", "70000"], "Nothing can be served at 127.0.0.1:70000"),
    ],
)
def test_mistakes_give_an_error_of_one_line(folder, capsys, words, message):
    assert main(["report", "--no-measures", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert error.count("\n") == 1
    assert not (folder / "no.db").exists()


def test_a_served_site_ends_with_control_c(folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(server.ReportServer, "serve_forever", interrupted)
    words = ["report", "--no-measures", "--serve", "--port", "0"]
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["address"].startswith("http://127.0.0.1:")
    assert err == ""
    assert not (folder / "site").exists()
    assert main([*words, "--host", "0.0.0.0"]) == 0
    assert "whoever can reach 0.0.0.0 can see these results" in capsys.readouterr().err
