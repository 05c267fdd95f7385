"""TLS on either side of the tap, SASL through it, and no secret in anything it writes."""

import socket
import struct

import pytest
from confluent_kafka import Consumer, Producer

from chaos.errors import ChaosError
from chaos.tap import process as tap
from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED
from scenarios.client_properties import without_tls
from tests.chaos.fakes import until
from tests.chaos.tap.certificates import Authority
from tests.secured import PREFIX

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def orders(secured):
    with secured.topic("orders") as name:
        yield name


def consume(bootstrap, topic, group, client):
    """Produce a record, and consume it as a member of a group."""
    producer = Producer({"bootstrap.servers": bootstrap, **client})
    producer.produce(topic, b"order")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": PREFIX + group,
         "auto.offset.reset": "earliest", **client}
    )  # fmt: skip
    consumer.subscribe([topic])
    until(lambda: consumer.consume(1, 0.2))
    consumer.commit(asynchronous=False)
    consumer.close()


def tls(ca, **more):
    return {"security.protocol": "SASL_SSL", "ssl.ca.location": str(ca), **more}


def log_of(folder):
    return (folder / "1" / "group.log").read_text()


def texts_in(folder):
    return [file.read_bytes() for file in folder.rglob("*") if file.is_file()]


def tapped(secured, listener, folder):
    """Return a tap that speaks TLS with a listener at which clients log in."""
    settings = tap.TapSettings({1: secured.at(listener)}, folder, tls(secured.authority.ca))
    return tap.running(settings)


@pytest.mark.parametrize(
    ("mechanism", "listener"), [("PLAIN", "SASL_SSL"), ("OAUTHBEARER", "OAUTH")]
)
def test_tls_to_the_brokers_and_sasl_through(mechanism, listener, secured, orders, tmp_path):
    """They tell a password and a token. SCRAM, which tells neither, goes through whole runs."""
    login = without_tls(secured.properties(mechanism))
    if mechanism == "PLAIN":
        login["sasl.password"] = secured.password
    with tapped(secured, listener, tmp_path) as running:
        consume(running.bootstrap, orders, mechanism, login)
    assert log_of(tmp_path).count(COMPLETED) > 4
    assert '"securityProtocol":"SASL_SSL"' in log_of(tmp_path)
    for text in texts_in(tmp_path):
        for secret in (secured.password, "Bearer", "alice"):
            assert secret.encode() not in text


def test_a_certificate_for_the_brokers(secured, orders, tmp_path):
    """Whom the broker takes it for, the tap does not know, and does not say (mTLS)."""
    to_broker = tls(secured.authority.ca, **{"ssl.certificate.location": str(secured.certificate)})
    settings = tap.TapSettings({1: secured.at("SSL")}, tmp_path, to_broker)
    with tap.running(settings) as running:
        consume(running.bootstrap, orders, "certified", {})
    assert '"securityProtocol":"SSL"' in log_of(tmp_path)
    assert "ANONYMOUS" not in log_of(tmp_path)
    assert not any(b"PRIVATE" in text for text in texts_in(tmp_path))


def connected_to(running):
    host, _, port = running.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), 60)


def test_a_broker_without_a_trusted_certificate_is_not_reached(secured, tmp_path):
    other = Authority(tmp_path)
    settings = tap.TapSettings({1: secured.at("SASL_SSL")}, tmp_path / "tap", tls(other.ca))
    with tap.running(settings) as running, connected_to(running) as connection:
        assert connection.recv(1) == b"", "it ends, as that of a broker that is not there"
    assert "certificate verify failed" in (tmp_path / "tap" / "tap.log").read_text()


def test_files_that_are_no_certificates(tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing")
    settings = tap.TapSettings({1: "127.0.0.1:1"}, tmp_path / "tap", tls(wrong))
    with pytest.raises(ChaosError, match=r"wrong\.pem.*PEM"), tap.running(settings):
        pass


def test_handshake_v0_is_refused_clearly(secured, tmp_path):
    """After v0, tokens come without headers: the tap could not tell them from requests."""
    with (
        tapped(secured, "SASL_SSL", tmp_path) as running,
        connected_to(running) as connection,
    ):
        body = struct.pack(">hhih", 17, 0, 5, -1) + struct.pack(">h", 5) + b"PLAIN"
        connection.sendall(struct.pack(">i", len(body)) + body)
        size, correlation_id, error = struct.unpack(">iih", connection.recv(10))
    assert (size, correlation_id, error) == (10, 5, Error.UNSUPPORTED_VERSION)
    assert "SaslHandshake v0 is not supported" in (tmp_path / "tap.log").read_text()
