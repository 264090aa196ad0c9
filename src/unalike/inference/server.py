"""HTTP server of a saved model: JSON in, scores and explanations out."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from queue import Empty, Full, Queue
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from unalike.data.adjacency import Adjacency
from unalike.errors import UserError
from unalike.formatting import json_safe
from unalike.http_server import Handler, Server
from unalike.importing.features import LIST, VECTOR
from unalike.importing.frames import FrameTable
from unalike.inference.explain import explain
from unalike.inference.model import Model, Prediction
from unalike.inference.new_nodes import AnyFeatures
from unalike.methods import name_of
from unalike.version import __version__

USAGE = "GET /health, POST /score"
MAX_BODY_BYTES = 8 << 20
MAX_NODES = 10_000
"""Nodes of one request."""
MAX_QUEUED = 256
"""Requests that wait; further ones are answered with 503."""
BATCH_NODES = 4_096
"""Nodes that are scored at a time, of several requests together."""
ANSWER_SECONDS = 60.0
"""How long a request waits for its scores."""
NODE_KEYS = frozenset({"id", "neighbours", "entering", "features"})
REQUEST_KEYS = frozenset({"nodes", "explain"})
MAX_EXPLAINED = 100
"""Nodes of one request that are explained."""
MAX_WEIGHT = float(np.finfo(np.float32).max)
TOP_INPUTS = 10
"""Inputs in an explanation unless `explain` is another number."""


class RequestError(UserError):
    """A request that cannot be answered, in one line."""


@dataclass(frozen=True)
class ScoreRequest:
    """New nodes by their neighbours and features, and how many inputs to explain."""

    nodes: list[Mapping[str, Any]]
    explain: int = 0

    @classmethod
    def parse(cls, body: bytes) -> ScoreRequest:
        document = _load(body)
        if not isinstance(document, dict) or not isinstance(
            document.get("nodes"), list
        ):
            raise RequestError('Send {"nodes": [{"neighbours": […]}, …]}.')
        _check_keys(document, REQUEST_KEYS, "The request")
        nodes = document["nodes"]
        if len(nodes) > MAX_NODES:
            raise RequestError(f"{len(nodes)} nodes; at most {MAX_NODES} are allowed.")
        for number, node in enumerate(nodes):
            _check_node(node, number)
        inputs = document.get("explain", 0)
        if isinstance(inputs, bool):
            inputs = TOP_INPUTS * inputs
        if not isinstance(inputs, int) or inputs < 0:
            raise RequestError("'explain' is true, or the number of inputs to name.")
        if inputs and len(nodes) > MAX_EXPLAINED:
            raise RequestError(
                f"{len(nodes)} nodes to explain; at most {MAX_EXPLAINED} are allowed."
            )
        return cls(nodes, inputs)


def _load(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"The request is no JSON: {error}.") from None


def _check_node(node: Any, number: int) -> None:
    if not isinstance(node, dict):
        raise RequestError(f"Node {number} is no object.")
    _check_keys(node, NODE_KEYS, f"Node {number}")
    if not isinstance(node.get("id"), str | int | float | None):
        raise RequestError(f"The 'id' of node {number} is no text or number.")
    for key in ("neighbours", "entering"):
        neighbours = node.get(key, [])
        if not isinstance(neighbours, list) or not all(map(_is_neighbour, neighbours)):
            raise RequestError(f"'{key}' of node {number} is no list of ids.")


def _check_keys(document: dict[str, Any], known: frozenset[str], what: str) -> None:
    if unknown := sorted(document.keys() - known):
        raise RequestError(
            f"{what} has an unknown key '{unknown[0]}'; known are "
            f"{', '.join(sorted(known))}."
        )


def _is_neighbour(one: Any) -> bool:
    """Whether this is an id, or a list of an id and the weight of the edge."""
    if isinstance(one, list):
        return len(one) == 2 and _is_id(one[0]) and _is_weight(one[1])
    return _is_id(one)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_weight(number: Any) -> bool:
    return type(number) in (int, float) and 0 < number <= MAX_WEIGHT


Waiting = tuple[ScoreRequest, Future[dict[str, Any]]]


@dataclass(eq=False)
class ScoringService:
    """Scores requests in batches: one thread uses the model, others wait for it."""

    model: Model
    started: float = field(default_factory=time.time)
    num_requests: int = 0
    num_nodes: int = 0
    _queue: Queue[Waiting] = field(default_factory=lambda: Queue(MAX_QUEUED))
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _parsing: threading.Lock = field(default_factory=threading.Lock)
    """A document takes many times the memory of its bytes."""

    def __enter__(self) -> ScoringService:
        self.model.check_row_wise()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def answer(self, body: bytes) -> dict[str, Any]:
        """The scores of a request; waits until its batch is scored."""
        with self._parsing:
            request = ScoreRequest.parse(body)
        future: Future[dict[str, Any]] = Future()
        self._queue.put_nowait((request, future))
        return future.result(ANSWER_SECONDS)

    def health(self) -> dict[str, Any]:
        """What is served, since when, and how much was asked."""
        info = self.model.graph_info
        return {
            "status": "ok",
            "unalike": __version__,
            "method": name_of(self.model.method),
            "graph": info.name,
            "known_nodes": info.num_known,
            "classes": self.model.classes,
            "features": info.num_features,
            "columns": self.model.encoder and self.model.encoder.names,
            "directed": info.directed,
            "uptime_seconds": time.time() - self.started,
            "requests": self.num_requests,
            "nodes": self.num_nodes,
            "waiting": self._queue.qsize(),
        }

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                batch = [self._queue.get(timeout=0.1)]
            except Empty:
                continue
            size = len(batch[0][0].nodes)
            while size < BATCH_NODES and not self._queue.empty():
                batch.append(self._queue.get_nowait())
                size += len(batch[-1][0].nodes)
            self._score_batch(batch)

    def _score_batch(self, batch: list[Waiting]) -> None:
        """Score several requests at once; after an error, each one alone."""
        try:
            answers = score_requests(self.model, [request for request, _ in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            for one in batch:
                self._score_batch([one])
            return
        for (request, future), answer in zip(batch, answers, strict=True):
            self.num_requests += 1
            self.num_nodes += len(request.nodes)
            future.set_result(answer)


def score_requests(model: Model, requests: list[ScoreRequest]) -> list[dict[str, Any]]:
    """The answers to requests, whose nodes are scored together."""
    nodes = [node for request in requests for node in request.nodes]
    if not nodes:
        return [{"scores": [], "unknown_neighbours": 0} for _ in requests]
    unknown = [num_unknown(model, node) for node in nodes]
    graph, _ = model.new_nodes(
        edges_of(nodes, "neighbours"),
        encode_features(model, nodes),
        entering=edges_of(nodes, "entering") if model.graph_info.directed else None,
    )
    prediction = model.to_prediction(model.score_rows(graph))
    predicted = zip(nodes, answers_of(prediction), strict=True)
    rows = [
        {"id": node.get("id", index), **answer}
        for index, (node, answer) in enumerate(predicted)
    ]
    answers, first = [], 0
    for request in requests:
        last = first + len(request.nodes)
        answer: dict[str, Any] = {
            "scores": rows[first:last],
            "unknown_neighbours": sum(unknown[first:last]),
        }
        if request.explain:
            own = graph.select_rows(torch.arange(first, last))
            answer["explanations"] = [
                {**document, "pushes": document["pushes"][: request.explain]}
                for document in map(asdict, explain(model, own))
            ]
        answers.append(answer)
        first = last
    return answers


def answers_of(prediction: Prediction) -> list[dict[str, Any]]:
    """The class and the probabilities of each node, or the predicted number."""
    if prediction.numbers is not None:
        return [{"value": number} for number in prediction.numbers.tolist()]
    classes = [str(name) for name in prediction.classes]
    probabilities = prediction.probabilities.tolist()
    return [
        {"class": label, "probabilities": dict(zip(classes, values, strict=True))}
        for label, values in zip(prediction.labels, probabilities, strict=True)
    ]


def edges_of(nodes: list[Mapping[str, Any]], key: str) -> list[tuple[Any, ...]]:
    """The index of a node, the id of a neighbour and the weight of the edge, if any."""
    return [
        (index, str(one[0]), float(one[1]))
        if isinstance(one, list)
        else (index, str(one))
        for index, node in enumerate(nodes)
        for one in node.get(key, ())
    ]


def num_unknown(model: Model, node: Mapping[str, Any]) -> int:
    """Neighbours of a node that the model does not know."""
    edges = edges_of([node], "neighbours") + edges_of([node], "entering")
    ids = pa.array([edge[1] for edge in edges], pa.large_string())
    return int((model.index.find(ids) < 0).sum())


def encode_features(model: Model, nodes: list[Mapping[str, Any]]) -> AnyFeatures:
    """The features of nodes: objects of table columns, or lists of numbers."""
    given = [node.get("features") for node in nodes]
    encoder, width = model.encoder, model.graph_info.num_features
    if encoder is None:
        return _number_rows([[] if one is None else one for one in given], width)
    for number, row in enumerate(given):
        keys = row if isinstance(row, dict) else ()
        for name in encoder.names:
            if name not in keys:
                raise RequestError(f"'features' of node {number} lacks '{name}'.")
    columns = {
        column.name: pa.array(
            [_text(row[column.name], column.kind) for row in given if row],
            pa.large_string(),
        )
        for column in encoder.columns
    }
    if not columns:
        return np.zeros((len(nodes), 0), np.float32)
    (batch,) = FrameTable.of(pa.table(columns), "the request").batches(encoder.names)
    if model.graph_info.sparse:
        return Adjacency.from_scipy(encoder.sparse(batch))
    return encoder.dense(batch)


def _number_rows(rows: list[Any], width: int) -> np.ndarray:
    try:
        values = np.array(rows)
    except ValueError:  # lists of several lengths
        values = np.array(None)
    if values.dtype.kind not in "biuf" or values.shape != (len(rows), width):
        raise RequestError(f"'features' of a node is a list of {width} numbers.")
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _text(value: Any, kind: str) -> str | None:
    """A value as a cell of a text table, lists as JSON in columns of lists."""
    if isinstance(value, list) and kind in (LIST, VECTOR):
        return json.dumps(value)
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str | int | float):
        return None if value is None else str(value)
    raise RequestError(f"The feature {value!r} is no number, text or null.")


# HTTP


class ModelServer(Server):
    """Answers `/score`, `/health` and `/`."""

    def __init__(self, service: ScoringService, host: str, port: int) -> None:
        self.service = service
        super().__init__(host, port, ModelHandler)


FAILURES: dict[type[Exception], tuple[HTTPStatus, str]] = {
    UserError: (HTTPStatus.BAD_REQUEST, "{}"),
    UnicodeEncodeError: (HTTPStatus.BAD_REQUEST, "A text is not Unicode."),
    Full: (HTTPStatus.SERVICE_UNAVAILABLE, "too many requests"),
    TimeoutError: (HTTPStatus.SERVICE_UNAVAILABLE, "it takes too long"),
}
"""Statuses and texts of errors; others are errors of the server."""


def failure(error: Exception) -> tuple[HTTPStatus, dict[str, Any]]:
    """The status and the document that answer an error."""
    for kind, (status, text) in FAILURES.items():
        if isinstance(error, kind):
            return status, {"error": text.format(error)}
    text = f"{type(error).__name__}: {error}"
    return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": text}


class ModelHandler(Handler):
    """Answers one request with JSON."""

    server: ModelServer

    def do_GET(self) -> None:
        if self.route in ("/", "/health"):
            self._send(HTTPStatus.OK, self.server.service.health())
        else:
            self.send_error(HTTPStatus.NOT_FOUND, USAGE)

    def do_POST(self) -> None:
        if self.route != "/score":
            self.send_error(HTTPStatus.NOT_FOUND, USAGE)
            return
        if self.body_size > MAX_BODY_BYTES:
            self.send_error(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The request has {self.body_size:,} bytes; at most "
                f"{MAX_BODY_BYTES:,} are allowed.",
            )
            return
        body = self.rfile.read(self.body_size)
        try:
            status, document = HTTPStatus.OK, self.server.service.answer(body)
        except Exception as error:
            status, document = failure(error)
        self._send(status, document)

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """Answer with an error and end the connection."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(status, {"error": message or explain or status.phrase})

    def _send(self, status: HTTPStatus, document: dict[str, Any]) -> None:
        text = json.dumps(json_safe(document), ensure_ascii=False)
        body = text.encode(errors="backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
