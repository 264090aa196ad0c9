"""`unalike serve`: scores and explanations of a saved model over HTTP on loopback."""

import csv
import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from unalike import ImportOptions, import_graph, load_model
from unalike.cli.main import main
from unalike.inference import server as serving
from unalike.inference.server import ModelServer, ScoringService


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of an imported graph with a gap, and tables of three new nodes."""
    folder = tmp_path_factory.mktemp("serve")
    numbers = range(60)
    people = pd.DataFrame(
        {
            "id": [f"p{number}" for number in numbers],
            "job": ["buyer", "seller"] * 30,
            "age": [None if number == 7 else 20 + number for number in numbers],
            "city": [("Rome", "Oslo", "Paris")[number % 3] for number in numbers],
        }
    )
    edges = pd.DataFrame(
        {
            "source": [f"p{number}" for number in numbers] * 2,
            "target": [f"p{(number * 7 + 1) % 60}" for number in numbers]
            + [f"p{(number + 31) % 60}" for number in numbers],
        }
    )
    import_graph(edges, people, out=folder / "g", options=ImportOptions(label="job"))
    words = ["linkx", "--hidden", "4", "--epochs", "8", "--device", "cpu"]
    path = str(folder / "m.safetensors")
    assert main(["train", str(folder / "g"), "--save", path, *words]) == 0
    (folder / "new.csv").write_text(
        "id,age,city\nn0,33,Rome\nn1,,Oslo\nn2,70,Atlantis\n"
    )
    (folder / "edges.csv").write_text(
        "source,target\nn0,p1\nn0,p2\nn1,p7\nn1,stranger\n"
    )
    return folder


NODES = [
    {"id": "n0", "neighbours": ["p1", "p2"], "features": {"age": 33, "city": "Rome"}},
    {
        "id": "n1",
        "neighbours": ["p7", "stranger"],
        "features": {"age": None, "city": "Oslo"},
    },
    {"id": "n2", "features": {"age": 70, "city": "Atlantis"}},
]


@pytest.fixture
def server(folder):
    with (
        ScoringService(load_model(folder / "m.safetensors")) as service,
        ModelServer(service, "127.0.0.1", 0) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method="POST", path="/score", body=None, headers=None):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)
    try:
        text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, text, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_scores_are_those_of_predict(server, folder, tmp_path, capsys):
    status, answer = ask(server, body={"nodes": NODES})
    assert status == 200
    assert answer["unknown_neighbours"] == 1
    out = tmp_path / "scores.csv"
    files = ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "new.csv")]
    words = ["predict", str(folder / "m.safetensors"), *files, "--out", str(out)]
    assert main([*words, "--device", "cpu"]) == 0
    with out.open() as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert [one["id"] for one in answer["scores"]] == ["n0", "n1", "n2"]
    for one in answer["scores"]:
        assert one["class"] == rows[one["id"]]["class"]
        for name, value in one["probabilities"].items():
            assert value == pytest.approx(float(rows[one["id"]][f"p_{name}"]), abs=1e-5)


def test_explanations_name_neighbours_and_features(server):
    _, answer = ask(server, body={"nodes": NODES[:1], "explain": 2})
    (explanation,) = answer["explanations"]
    assert len(explanation["pushes"]) == 2
    _, full = ask(server, body={"nodes": NODES[:1], "explain": True})
    kinds = {push["kind"] for push in full["explanations"][0]["pushes"]}
    assert kinds == {"neighbour", "feature"}


def test_columns_of_lists_take_lists_or_their_text(tmp_path):
    people = pd.DataFrame(
        {
            "id": range(40),
            "job": ["buyer", "seller"] * 20,
            "tags": [f"[{number % 3}, {number % 5 + 3}]" for number in range(40)],
        }
    )
    edges = pd.DataFrame({"source": range(40), "target": [*range(1, 40), 0]})
    options = ImportOptions(label="job")
    import_graph(edges, people, out=tmp_path / "g", options=options)
    path = tmp_path / "m.safetensors"
    words = ["linkx", "--hidden", "4", "--epochs", "2", "--device", "cpu"]
    assert main(["train", str(tmp_path / "g"), "--save", str(path), *words]) == 0
    with ScoringService(load_model(path)) as service:
        nodes = [{"features": {"tags": tags}} for tags in ([1, 4], "[1, 4]", [2])]
        scores = service.answer(json.dumps({"nodes": nodes}).encode())["scores"]
    first, same, other = (one["probabilities"] for one in scores)
    assert first == same != other


def test_health_says_what_is_served(server):
    ask(server, body={"nodes": NODES})
    status, answer = ask(server, "GET", "/health")
    assert status == 200
    assert answer["status"] == "ok"
    assert answer["columns"] == ["age", "city"]
    assert answer["classes"] == ["buyer", "seller"]
    assert (answer["requests"], answer["nodes"]) == (1, 3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "The request is no JSON"),
        ([], 'Send {"nodes"'),
        ({"nodes": [1]}, "Node 0 is no object."),
        ({"nodes": [], "nods": 1}, "unknown key 'nods'"),
        ({"nodes": [{"neighbors": []}]}, "unknown key 'neighbors'"),
        ({"nodes": [{"neighbours": [1.5]}]}, "no list of ids"),
        ({"nodes": [{"features": {"age": 1}}]}, "node 0 lacks 'city'"),
        ({"nodes": [{"features": {"age": [], "city": ""}}]}, "no number, text or null"),
        ({"nodes": [{"features": {"age": "old", "city": ""}}]}, "'age' is not numeric"),
        ({"nodes": [], "explain": -1}, "'explain' is true"),
    ],
)
def test_mistakes_are_answered_in_one_line(server, body, message):
    status, answer = ask(server, body=body)
    assert status == 400
    assert message in answer["error"]
    assert ask(server, body={"nodes": NODES})[0] == 200


def test_a_mistake_does_not_spoil_requests_of_the_same_batch(server):
    wrong = {"nodes": [{"features": {"age": "old", "city": ""}}]}
    bodies = [wrong if number % 3 == 0 else {"nodes": NODES} for number in range(30)]
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda body: ask(server, body=body)[0], bodies))
    assert found == [400 if number % 3 == 0 else 200 for number in range(30)]


def test_limits_are_kept(server, monkeypatch):
    monkeypatch.setattr(serving, "MAX_NODES", 2)
    assert "at most 2" in ask(server, body={"nodes": NODES})[1]["error"]
    monkeypatch.setattr(serving, "MAX_BODY_BYTES", 10)
    assert "at most 10 are allowed" in ask(server, body={"nodes": NODES})[1]["error"]
    assert ask(server, "GET", "/nothing")[0] == 404
    assert ask(server, "POST", "/nothing", body={})[0] == 404
    assert ask(server, "GET", "/health", headers={"Host": "evil.example"})[0] == 421
    rebound = {"Host": "evil.example"}
    assert ask(server, body={"nodes": []}, headers=rebound)[0] == 421


def test_too_many_waiting_requests_are_refused(server, monkeypatch):
    entered, release = threading.Event(), threading.Event()
    score = serving.score_requests

    def slow(model, requests):
        entered.set()
        assert release.wait(30)
        return score(model, requests)

    monkeypatch.setattr(serving, "score_requests", slow)
    server.service._queue.maxsize = 1
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, server, body={"nodes": NODES})
        assert entered.wait(30)
        second = pool.submit(ask, server, body={"nodes": NODES})
        while not server.service._queue.full():
            pass
        assert ask(server, body={"nodes": NODES})[0] == 503
        release.set()
        assert (first.result()[0], second.result()[0]) == (200, 200)


def test_only_loopback_and_models_of_new_nodes_are_served(folder, capsys, tmp_path):
    model = str(folder / "m.safetensors")
    assert main(["serve", model, "--host", "0.0.0.0"]) == 1
    assert "a model is served on loopback" in capsys.readouterr().err
    assert main(["serve", model, "--port", "70000"]) == 1
    assert "Nothing can be served at" in capsys.readouterr().err
    path = str(tmp_path / "gcn")
    words = ["gcn", "--hidden", "4", "--epochs", "2", "--device", "cpu"]
    assert main(["train", str(folder / "g"), "--save", path, *words]) == 0
    assert main(["serve", path]) == 1
    assert "gcn cannot score new nodes" in capsys.readouterr().err
