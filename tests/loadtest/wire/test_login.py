"""The client of `client: wire` on listeners for TLS, client certificates, PLAIN and SCRAM."""

import threading
import time

import pytest

from loadtest.configs import MemberConfig
from loadtest.wire.client import GroupClient
from tests.secured import PREFIX, Secured

pytestmark = pytest.mark.cluster


class OverError(Exception):
    """The test ends."""


class Heard:
    """What a client says."""

    def __init__(self):
        self.partitions, self.errors, self.over = None, [], threading.Event()

    def assigned(self, partitions, _):
        self.partitions = {(part.topic, part.partition) for part in partitions}

    def error(self, text):
        self.errors.append(text)

    def gate(self):
        if self.over.is_set():
            raise OverError

    def __getattr__(self, _):
        return lambda *_, **__: None


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    with Secured(tmp_path_factory.mktemp("login")) as here:
        here.prepare()
        with here.topic("orders"):
            yield here


def heard_of(bootstrap, group, properties):
    """Join a group with these properties, until there is an assignment or an error."""
    group, topic = PREFIX + group, f"{PREFIX}orders"
    config = MemberConfig(group, group, "static", "i", (topic,), "range", 6_000, 500, 60_000, 1_000)
    heard = Heard()
    client = GroupClient(config, bootstrap, properties, heard, heard.gate, lambda: True)

    def run():
        try:
            client.run()
        except OverError:
            client.disconnect()

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 60
    while heard.partitions is None and not heard.errors:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    heard.over.set()
    thread.join(60)
    assert not thread.is_alive()
    return heard


def properties(secured, password, mechanism="PLAIN"):
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.authority.ca,
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_members_log_in(secured, mechanism):
    login = properties(secured, secured.password, mechanism)
    heard = heard_of(secured.at("SASL_SSL"), f"{mechanism}-group", login)
    assert heard.partitions == {(f"{PREFIX}orders", 0)}, heard.errors


def test_a_wrong_password_is_an_error(secured):
    heard = heard_of(secured.at("SASL_SSL"), "wrong", properties(secured, "guessed"))
    assert "the broker refuses the login" in heard.errors[0]
    assert "Invalid username or password" in heard.errors[0]
    assert "guessed" not in heard.errors[0]


def test_members_have_certificates(secured):
    properties = {
        "security.protocol": "SSL",
        "ssl.ca.location": secured.authority.ca,
        "ssl.certificate.location": secured.certificate,
        "ssl.key.location": secured.certificate,
    }
    heard = heard_of(secured.at("SSL"), "certified", properties)
    assert heard.partitions == {(f"{PREFIX}orders", 0)}, heard.errors


def test_a_broker_that_nobody_vouches_for_is_refused(secured):
    heard = heard_of(secured.at("SASL_SSL"), "unknown", {"security.protocol": "SSL"})
    assert "certificate verify failed" in heard.errors[0]
