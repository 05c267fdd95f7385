import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.java import find_java
from chaos.clusters.zookeeper import ZooKeeper
from tests.chaos.clusters.test_jars import unpacked


@contextmanager
def serving(answers: list[str]) -> Iterator[int]:
    """A server on the port that is yielded: it tells one answer after the other to `dump`."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            assert self.request.recv(16) == b"dump"
            self.request.sendall(answers.pop(0).encode())

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def dump(*names: str) -> str:
    """What ZooKeeper 3.5.7 says."""
    return (
        "SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at Sat Nov 21 19:00:01 UTC 2026:\n"
        "\t0x10001c3a7b90000\nephemeral nodes dump:\nSessions with Ephemerals (1):\n"
        "0x10001c3a7b90000:\n" + "\n".join(f"\t{name}" for name in names)
    )


def test_a_broker_is_forgotten_once_its_name_is_gone(tmp_path: Path) -> None:
    """Another one may live on."""
    mine, others = dump("/controller", "/brokers/ids/1"), dump("/brokers/ids/10", "/brokers/ids/2")
    answers = [mine, dump("/brokers/ids/1"), others]
    with serving(answers) as port:
        ZooKeeper(tmp_path, port).wait_until_forgotten(1)
    assert answers == []


def test_a_zookeeper_that_cannot_start_reports_why(tmp_path: Path) -> None:
    java = find_java()
    jar = unpacked(tmp_path, "empty.jar") / "libs" / "empty.jar"
    zookeeper = ZooKeeper(tmp_path / "zookeeper", 1)
    with pytest.raises(ClusterError, match=r"ZooKeeper ended with status 1: .*QuorumPeerMain"):
        zookeeper.start([str(java), "-cp", str(jar)])
    zookeeper.end()
