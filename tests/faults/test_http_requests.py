"""Odd HTTP requests: an answer or a closed connection, and the next one is answered."""

import json
import random
import socket
import struct
import threading
import time
from contextlib import contextmanager

import pandas as pd
import pytest
from damage import damage
from graphs import suiting

import unalike
from unalike import http_server
from unalike.experiments.database import ResultsDatabase
from unalike.inference.server import ModelServer, ScoringService
from unalike.reports.site.server import LiveSite, ReportServer
from unalike.reports.site.site_data import SiteData

NODE = {"id": "new", "neighbours": ["p1"], "features": {"age": 3, "city": "Rome"}}
TRAINING = unalike.Training(epochs=2)
HALF = "\ud800"
"""Half of a surrogate pair, which JSON can hold and UTF-8 cannot."""


@contextmanager
def running(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving_model(stored, path):
    """The server of a small model that is trained on a stored graph."""
    options = unalike.RunOptions(model=path)
    unalike.run(stored, unalike.LINKX(hidden=4, training=TRAINING), options=options)
    with (
        ScoringService(unalike.load_model(path)) as service,
        running(ModelServer(service, "127.0.0.1", 0)) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A served model of a graph with two columns."""
    folder, ids = tmp_path_factory.mktemp("serve"), [f"p{i}" for i in range(30)]
    people = {"id": ids, "job": ["a", "b"] * 15, "age": range(30)}
    people["city"] = ["Rome", "Oslo", "Paris"] * 10
    edges = pd.DataFrame({"source": ids, "target": [*ids[7:], *ids[:7]]})
    options = unalike.ImportOptions(label="job")
    unalike.import_graph(edges, pd.DataFrame(people), out=folder / "g", options=options)
    with serving_model(unalike.open_graph(folder / "g"), folder / "m") as found:
        yield found


@pytest.fixture(scope="module")
def array_server(tmp_path_factory):
    """A served model of a graph with two columns of an array."""
    folder, graph = tmp_path_factory.mktemp("serve"), suiting(nodes=30)
    splits = unalike.random_splits(graph.labels, count=1)
    stored = unalike.save_graph(folder / "g", graph, splits=splits)
    with serving_model(stored, folder / "m") as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A served report of an empty database."""
    url = f"sqlite:///{tmp_path_factory.mktemp('page') / 'results.db'}"
    with (
        ResultsDatabase.open(url) as results,
        running(ReportServer(LiveSite(SiteData(results)), "127.0.0.1", 0)) as server,
    ):
        yield server


@pytest.fixture(params=["server", "page"])
def either(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def no_traceback(capfd):
    yield
    assert "Traceback" not in capfd.readouterr().err


def send(server, request: bytes) -> bytes:
    """Everything that is answered until the connection ends."""
    with socket.create_connection(server.server_address[:2], timeout=60) as line:
        try:
            line.sendall(request)
            line.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: line.recv(1 << 16), b""))
        except OSError:  # the server has closed the connection
            return b""


def request_of(document, *, method="POST", path="/score", headers=()) -> bytes:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    first = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    first.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*first, "", ""]).encode() + body


def ask(server, document) -> tuple[int, dict]:
    head, _, body = send(server, request_of(document)).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def is_alive(server) -> bool:
    return send(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(
        b"HTTP/1.1 200"
    )


ODD = [None, True, -1, 2**70, 10**400, 1e999, float("nan"), "", HALF, "=1+1", []]
ODD += [{}, [[1]], "x" * 10_000, {"nodes": []}]
ODD += [["p1", 1], ["p1", 10**400], [[["p1", 1], 1], 1]]


def odd_document(rng: random.Random):
    node = json.loads(json.dumps(NODE))
    document = {"nodes": [node, NODE], "explain": rng.choice([0, 1, True])}
    parent = rng.choice([document, node, node["features"], node["neighbours"]])
    key = rng.choice([*parent]) if isinstance(parent, dict) else 0
    parent[key] = rng.choice(ODD)
    if rng.random() < 0.1:
        document[rng.choice([HALF, "a[/x]", ""])] = 1
    return document


def test_odd_documents_are_answered_and_never_an_error_of_the_server(server, some):
    for rng in some:
        status, answer = ask(server, odd_document(rng))
        assert status in (200, 400), answer
        assert ("error" in answer) == (status == 400)
    assert is_alive(server)


@pytest.mark.parametrize(
    "features",
    [["x", "y"], [[1], [1]], [None, 1], [10**400, 1], [1e999, 1], [1], {}, "xy", 7],
)
def test_features_that_are_no_numbers_are_refused(array_server, features):
    status, answer = ask(array_server, {"nodes": [{"features": features}]})
    assert status == 400
    assert "number" in answer["error"]
    assert ask(array_server, {"nodes": [{"features": [1, 2.5]}]})[0] == 200


def test_damaged_requests_end_in_an_answer_or_a_closed_connection(either, some):
    whole = request_of({"nodes": [NODE]}, headers=["Connection: close"])
    for rng in some:
        found = send(either, damage(whole, rng))
        assert b" 500 " not in found.partition(b"\r\n")[0], found
    assert is_alive(either)


AMBIGUOUS = {
    "body of GET": request_of(b"GET /x HTTP/1.1\r\n\r\n", method="GET", path="/"),
    "two lengths": request_of({}, headers=["Content-Length: 50"]),
    "two hosts": request_of({}, headers=["Host: evil.example"]),
    "chunks": request_of(b"0\r\n\r\n", headers=["Transfer-Encoding: chunked"]),
    "negative": request_of({}).replace(b": 2", b": -2"),
    "digits": request_of({}).replace(b": 2", b": " + b"9" * 5000),
    "url": b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_requests_of_two_meanings_get_one_answer_and_end(either, name):
    found = send(either, AMBIGUOUS[name] + b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 4")
    assert found.count(b"HTTP/1.1 ") == 1
    assert is_alive(either)


def test_pipelined_requests_are_answered_in_order(server):
    one = request_of({"nodes": [NODE]})
    found = send(server, one + one + b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
    statuses = [part[:3] for part in found.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", b"404"]


def test_a_request_that_arrives_too_slowly_is_cut(either, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.3)
    started = time.monotonic()
    with (
        socket.create_connection(either.server_address[:2]) as line,
        pytest.raises(ConnectionError),
    ):
        while time.monotonic() < started + 30:
            line.sendall(b"G")
            time.sleep(0.02)
    assert time.monotonic() - started < 10


def test_clients_that_go_away_are_no_errors(server):
    for _ in range(20):
        line = socket.create_connection(server.server_address[:2])
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.sendall(request_of({"nodes": [NODE] * 500}))
        line.close()
    assert is_alive(server)


def test_more_connections_than_allowed_are_closed(either):
    for _ in range(http_server.MAX_CONNECTIONS):
        # Earlier clients may still be answered.
        assert either.free_connections.acquire(timeout=60)
    try:
        assert not is_alive(either)
    finally:
        for _ in range(http_server.MAX_CONNECTIONS):
            either.free_connections.release()
    assert is_alive(either)
