"""Load test of `unalike serve` on loopback: requests a second, latency and memory.

A model of a random graph is trained and served in this process; threads of it send
requests over kept connections. All of it is on one machine, clients included.
"""

import argparse
import http.client
import json
import random
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch

from unalike import LINKX, Graph, RunOptions, Training, load_model, run
from unalike.inference.server import ModelServer, ScoringService


def train(path, nodes):
    """Save a model of a random graph with 16 features."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(
        rng.integers(0, nodes, 10 * nodes),
        rng.integers(0, nodes, 10 * nodes),
        features=torch.from_numpy(rng.normal(size=(nodes, 16)).astype(np.float32)),
        labels=rng.integers(0, 2, nodes),
    )
    method = LINKX(hidden=32, training=Training(epochs=2))
    run(graph, method, splits=[0], options=RunOptions(model=path))


def resident_mb():
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def client(address, nodes, stop, latencies):
    """Send one request after the other until the time is over."""
    rng = random.Random(threading.get_ident())
    connection = http.client.HTTPConnection(*address, timeout=60)
    while not stop.is_set():
        node = {
            "neighbours": rng.sample(range(nodes), 30),
            "features": [rng.random() for _ in range(16)],
        }
        start = time.perf_counter()
        connection.request("POST", "/score", json.dumps({"nodes": [node]}))
        response = connection.getresponse()
        response.read()
        assert response.status == 200
        latencies.append(time.perf_counter() - start)
    connection.close()


def main():
    """Measure for some seconds, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        train(path, options.nodes)
        model = load_model(path)
    with (
        ScoringService(model) as service,
        ModelServer(service, "127.0.0.1", 0) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address, stop = server.server_address[:2], threading.Event()
        latencies = []
        threads = [
            threading.Thread(
                target=client, args=(address, options.nodes, stop, latencies)
            )
            for _ in range(options.clients)
        ]
        for thread in threads:
            thread.start()
        memory = []
        for _ in range(10):
            time.sleep(options.seconds / 10)
            memory.append(resident_mb())
        stop.set()
        for thread in threads:
            thread.join()
        server.shutdown()
    times = np.sort(latencies) * 1000
    document = {
        "clients": options.clients,
        "requests": len(times),
        "requests_per_second": len(times) / options.seconds,
        "p50_ms": float(np.quantile(times, 0.5)),
        "p99_ms": float(np.quantile(times, 0.99)),
        "memory_mb": memory,
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
