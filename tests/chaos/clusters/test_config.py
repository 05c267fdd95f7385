import re
from pathlib import Path

from chaos.clusters.config import kraft, server_properties, with_zookeeper

IDENTITY = kraft(2, {1: "a:9101", 2: "b:9102"})
NETWORK = {"listeners": "PLAINTEXT://b:9002,CONTROLLER://b:9102"}
DATA = Path("/data")


def read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_each_broker_is_a_controller_too() -> None:
    properties = read(server_properties(IDENTITY, 2, NETWORK, DATA, {}))
    assert properties["node.id"] == "2"
    assert properties["process.roles"] == "broker,controller"
    assert properties["controller.quorum.voters"] == "1@a:9101,2@b:9102"
    assert properties["listeners"] == NETWORK["listeners"]
    assert properties["log.dirs"] == "/data"


def test_a_broker_with_a_zookeeper_has_no_controller_properties() -> None:
    """Kafka 2.4 to 2.7 do not know such properties."""
    network = {"listeners": "PLAINTEXT://b:9002"}
    text = server_properties(with_zookeeper(2, "z:2181"), 1, network, DATA, {})
    properties = read(text)
    assert properties["broker.id"] == "2"
    assert properties["zookeeper.connect"] == "z:2181"
    assert not re.search(r"node\.id|process\.roles|controller|CONTROLLER", text)
    stretched = {"zookeeper.session.timeout.ms": 18_000}
    text = server_properties(with_zookeeper(2, "z:2181"), 1, network, DATA, stretched)
    assert read(text)["zookeeper.session.timeout.ms"] == "18000"


def test_group_records_are_as_safe_as_the_brokers_allow() -> None:
    for brokers, replicas in ((1, "1"), (2, "2"), (3, "3"), (5, "3")):
        properties = read(server_properties(IDENTITY, brokers, NETWORK, DATA, {}))
        assert properties["offsets.topic.replication.factor"] == replicas


def test_properties_of_the_experiment_win() -> None:
    overrides = {
        "offsets.topic.num.partitions": 1,
        "auto.create.topics.enable": True,
        "listeners": "PLAINTEXT://c:1",
        "group.initial.rebalance.delay.ms": "250",
    }
    properties = read(server_properties(IDENTITY, 2, NETWORK, DATA, overrides))
    assert properties["offsets.topic.num.partitions"] == "1"
    assert properties["auto.create.topics.enable"] == "true"
    assert properties["listeners"] == "PLAINTEXT://c:1"
    assert properties["group.initial.rebalance.delay.ms"] == "250"


def test_values_survive_the_properties_format() -> None:
    text = server_properties(IDENTITY, 2, NETWORK, DATA, {"a": "C:\\x", "b": "1\n2"})
    assert "a=C:\\\\x\n" in text
    assert "b=1\\n2\n" in text
