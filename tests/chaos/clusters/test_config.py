from pathlib import Path

from chaos.clusters.config import server_properties

PORTS = {1: (9001, 9101), 2: (9002, 9102)}


def read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_each_broker_is_a_controller_too() -> None:
    properties = read(server_properties(2, PORTS, Path("/data"), {}))
    assert properties["node.id"] == "2"
    assert properties["process.roles"] == "broker,controller"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9101,2@127.0.0.1:9102"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9002,CONTROLLER://127.0.0.1:9102"
    assert properties["log.dirs"] == "/data"


def test_group_records_are_as_safe_as_the_brokers_allow() -> None:
    for brokers, replicas in ((1, "1"), (2, "2"), (3, "3"), (5, "3")):
        ports = {node: (9000 + node, 9100 + node) for node in range(1, brokers + 1)}
        properties = read(server_properties(1, ports, Path("/data"), {}))
        assert properties["offsets.topic.replication.factor"] == replicas


def test_what_the_experiment_says_wins() -> None:
    overrides = {
        "offsets.topic.num.partitions": 1,
        "auto.create.topics.enable": True,
        "group.initial.rebalance.delay.ms": "250",
    }
    properties = read(server_properties(1, PORTS, Path("/data"), overrides))
    assert properties["offsets.topic.num.partitions"] == "1"
    assert properties["auto.create.topics.enable"] == "true"
    assert properties["group.initial.rebalance.delay.ms"] == "250"


def test_values_survive_the_properties_format() -> None:
    text = server_properties(1, PORTS, Path("/data"), {"a": "C:\\x", "b": "1\n2"})
    assert "a=C:\\\\x\n" in text
    assert "b=1\\n2\n" in text
