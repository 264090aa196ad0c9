"""`unalike serve`: answer HTTP requests with the scores of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from unalike.cli.console import OUT, print_output
from unalike.device import choose_device
from unalike.errors import UserError
from unalike.http_server import is_loopback
from unalike.inference.model_file import load_model
from unalike.inference.server import ModelServer, ScoringService


def command(
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    device: str = "cpu",
    json: bool = False,
) -> None:
    """Serve a model that `unalike train --save` wrote, on an address of this machine.

    POST /score takes {"nodes": [{"id": …, "neighbours": [ids], "features": {column:
    value}}], "explain": true} and returns classes and probabilities, with the inputs
    behind each if asked; `entering` lists the edges that point at a node of a directed
    graph. GET /health says what is served. There is no encryption and no password,
    so that addresses other than loopback are refused: put a proxy in front.

    Example: unalike serve shop.safetensors --port 8080

    Args:
        model: The file of the model, of a method that can score new nodes.
        host: Address to serve at: a loopback address.
        port: Port to serve at; 0 takes any free one.
        device: cpu, cuda, or auto: a GPU where there is one.
        json: Print one JSON document with the address instead of words.
    """
    if not is_loopback(host):
        raise UserError(
            f"--host is {host}; a model is served on loopback (127.0.0.1), and a proxy "
            "in front of it can ask for passwords."
        )
    loaded = load_model(model, device=choose_device(device))
    with (
        ScoringService(loaded) as service,
        ModelServer(service, host, port) as server,
    ):
        text = f"{server.address} serves {model}; Ctrl-C ends it."
        print_output({"address": server.address}, text, json=json)
        OUT.file.flush()
        server.serve_until_interrupted()
