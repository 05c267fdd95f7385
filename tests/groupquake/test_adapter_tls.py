"""Whom the Go adapters trust: a server of the test's own sees whether they go on."""

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groupquake.clients.adapters import Adapter, built
from scenarios.clients import FIELDS, VARIABLES
from tests.chaos.tap.certificates import Authority

HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
VALUES = dict.fromkeys(FIELDS, "1000") | {
    "instance_id": "", "assignor": "range", "topics": "orders", "group": "g", "client_id": "m",
    "session_timeout_ms": "6000", "max_poll_interval_ms": "10000", "metadata_max_age_ms": "30000",
}  # fmt: skip


def authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


@contextmanager
def started(name: str, bootstrap: str, file: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a member of an adapter inside the block."""
    adapter = Adapter.named(name)
    if (missing := adapter.missing) is not None:
        pytest.skip(f"there is no {missing!r} here")
    values = VALUES | {"bootstrap": bootstrap, "client_properties": str(file)}
    with (folder / "member.log").open("w") as log, subprocess.Popen(
        built(adapter, print),
        env={**os.environ, **{VARIABLES[field]: value for field, value in values.items()}},
        stdout=log, stderr=log, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["franz-go", "sarama"])
@pytest.mark.parametrize(
    ("trusted", "host", "check", "goes_on"),
    [
        (True, HERE, "https", True),
        (True, ELSEWHERE, "https", False),
        (True, ELSEWHERE, "none", True),
        (False, HERE, "none", False),
    ],
)
def test_the_chain_is_checked_with_and_without_the_host(
    name: str, trusted: bool, host: str, check: str, goes_on: bool, tmp_path: Path
) -> None:
    """A client that trusts the server sends its first request, which comes before its password."""
    known, other = authority(tmp_path / "known"), authority(tmp_path / "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain((known if trusted else other).issue("broker", host))
    file = tmp_path / "client.properties"
    file.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=alice\n"
        f"sasl.password=secret\nssl.ca.location={known.ca}\n"
        f"ssl.endpoint.identification.algorithm={check}\n"
    )
    with socket.create_server((HERE, 0)) as server:
        server.settimeout(20)
        bootstrap = f"{HERE}:{server.getsockname()[1]}"
        with started(name, bootstrap, file, tmp_path):
            connection, _ = server.accept()
            connection.settimeout(60)
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    came = secured.recv(1) != b""
            except (ssl.SSLError, ConnectionError):
                came = False
    assert came == goes_on, (tmp_path / "member.log").read_text()


@pytest.mark.parametrize("name", ["franz-go", "sarama"])
@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("ssl.certificate.location={folder}/none.pem", "none.pem: no such file"),
        ("ssl.ca.location={folder}/none.pem", "none.pem: no such file"),
        ("sasl.mechanism=OAUTHBEARER", "sasl.mechanism: OAUTHBEARER is not known"),
    ],
)
def test_what_cannot_be_used_ends_the_member(
    name: str, lines: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SASL_SSL\n{lines.format(folder=tmp_path)}\n")
    with started(name, f"{HERE}:1", file, tmp_path) as process:
        assert process.wait(60) == 1
    assert problem in (tmp_path / "member.log").read_text()
