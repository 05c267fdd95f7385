"""Configs of groups on the wire: who may ask, who acts, and whose log has the line."""

import threading
from contextlib import closing
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from chaos.removal import configure_group
from chaos.witness import Witness
from kafka_protocol.coordinator_lines import JAVA
from kafka_protocol.errors import Error
from kafka_protocol.group_configs import EXPECTED, TIMEOUT
from loadtest.wire import Connection
from reports.judgement.log.parsing import Parser, parse_any, parse_request
from scenarios import named
from scenarios.faults.base import await_finding
from tests.reference_coordinator.server.serving import serving
from tests.reference_coordinator.server.test_served import CONFIG, WITHIN_S, coordinator
from tests.reference_coordinator.server.test_served import GROUP as NAME

OTHER = 2


@pytest.fixture
def at(tmp_path):
    with serving(tmp_path, profile="pre-registration", config=CONFIG) as running:
        yield running


def lines_of(folder, broker):
    """Return the requests about configs that a broker has logged."""
    parser = Parser(JAVA, numbered=True)
    text = (folder / str(broker) / "group.log").read_text().splitlines()
    bodies = [parser.split(line).body for line in text if "INCREMENTAL_ALTER_CONFIGS" in line]
    assert [parse_request(one) for one in bodies] == [parse_any(one) for one in bodies]
    return [parse_request(one) for one in bodies]


def config_of(at):
    """Return the configs as the coordinator has them."""

    def found():
        group = at.cluster.coordinator(NAME).group(NAME).group
        return group.config.expected, group.config.wait_ms

    return at.ask(found)


def entry(name, value=None):
    operation = AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
    return ConfigEntry(name, value, incremental_operation=operation)


def altered(admin, *entries, **more):
    resource = ConfigResource(ConfigResource.Type.GROUP, NAME, incremental_configs=[*entries])
    [found] = admin.incremental_alter_configs([resource], **more).values()
    return found.result(WITHIN_S)


def test_any_broker_takes_them_and_the_coordinator_logs_them(at, tmp_path):
    """With librdkafka's AdminClient, which sends what concerns a group to any broker."""
    coordinating = coordinator(at)
    for broker in (1, 2, 3):
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{at.ports[broker - 1]}"})
        altered(admin, entry(EXPECTED, f"a,b-{broker}"), broker=broker)
        assert config_of(at) == ({"a", f"b-{broker}"}, 300_000)
    altered(admin, entry(EXPECTED), entry(TIMEOUT, "5000"))
    assert config_of(at) == (None, 5_000)
    at.act("stop", coordinating)
    assert [len(lines_of(tmp_path, one)) for one in (1, 2, 3)] == [
        4 * (one == coordinating) for one in (1, 2, 3)
    ]
    assert all(
        (one.group, one.readable) == (NAME, True) for one in lines_of(tmp_path, coordinating)
    )
    assert config_of(at) == (None, 5_000), "it is stored"


def test_what_is_no_config_is_refused(at):
    admin = AdminClient({"bootstrap.servers": at.bootstrap})
    for wrong in (entry("consumer.session.timeout.ms", "1"), entry(TIMEOUT, "soon")):
        with pytest.raises(KafkaException, match="INVALID_CONFIG"):
            altered(admin, wrong)
    with pytest.raises(KafkaException, match="INVALID_REQUEST"):
        altered(admin, entry(TIMEOUT, "5000"), validate_only=True)
    topic = {"resourceType": OTHER, "resourceName": NAME, "configs": []}
    with closing(Connection("127.0.0.1", at.ports[0], "c")) as client:
        body = {"resources": [topic], "validateOnly": False}
        [found] = client.ask("INCREMENTAL_ALTER_CONFIGS", 1, body)["responses"]
        assert found["errorCode"] == Error.INVALID_REQUEST


def test_a_fault_s_request_is_answered_by_its_error(at):
    assert configure_group(at.bootstrap, NAME, {EXPECTED: "a", TIMEOUT: "5000"}) == Error.NONE
    assert configure_group(at.bootstrap, NAME, {EXPECTED: ""}) == Error.NONE
    assert configure_group(at.bootstrap, NAME, {"x": "y"}) == Error.INVALID_CONFIG


@pytest.mark.parametrize(
    ("profile", "holds", "evidence"),
    [
        ("hot-standby", True, "of groupquake-f1.1 answered NONE (group.log of broker "),
        ("4.3", False, "INCREMENTAL_ALTER_CONFIGS was answered INVALID_CONFIG"),
    ],
)
def test_the_line_of_the_coordinator_bears_a_fault_out(tmp_path, profile, holds, evidence):
    with serving(tmp_path, profile=profile, config=CONFIG) as at:
        context = SimpleNamespace(
            fault_id="f1.1",
            witness=Witness({broker: tmp_path / str(broker) / "group.log" for broker in (1, 2, 3)}),
            configure=lambda *asked: configure_group(at.bootstrap, *asked[:2], client_id=asked[2]),
            await_finding=lambda *how: await_finding(*how, threading.Event()),
        )
        (fault,) = named("hot-standby").faults[0].aimed(context)
        fault.inject()
        found = fault.verify()
    assert (found.holds, evidence in found.evidence) == (holds, True)


def test_a_release_has_none():
    with serving(profile="4.3", config=CONFIG) as at:
        assert configure_group(at.bootstrap, NAME, {EXPECTED: "a"}) == Error.INVALID_CONFIG
