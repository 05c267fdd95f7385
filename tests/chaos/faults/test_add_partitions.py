from functools import partial

import pytest

from chaos.faults.add_partitions import AddPartitions


@pytest.fixture
def growth(fake_cluster):
    add = partial(fake_cluster.add_partitions, "orders", 6)
    return AddPartitions("orders", 6, add, fake_cluster.brokers, fake_cluster)


def test_partitions_are_there_once_every_broker_knows_their_leaders(fake_cluster, growth, stop):
    assert (growth.kind, growth.target, growth.group) == ("one-shot", "orders", None)
    growth.inject()
    found = growth.verify(stop)
    assert found.holds
    assert found.evidence == (
        "6 partitions of orders with leaders, by broker 1, broker 2, broker 3"
    )


def test_a_broker_that_is_away_is_no_witness(fake_cluster, growth, stop):
    fake_cluster.mute.add(2)
    growth.inject()
    assert growth.verify(stop).evidence.endswith(" by broker 1, broker 3")


@pytest.mark.parametrize("state", [{"behind": {3: 5}}, {"mute": {1, 2, 3}}])
def test_a_broker_without_the_partitions_and_no_broker_at_all_prove_nothing(
    fake_cluster, growth, stop, monkeypatch, state
):
    monkeypatch.setattr("chaos.faults.add_partitions._KNOWN_WITHIN_MS", 50)
    for name, what in state.items():
        setattr(fake_cluster, name, what)
    growth.inject()
    found = growth.verify(stop)
    assert not found.holds
    assert found.evidence == (
        "not every broker knows 6 partitions of orders with a leader within 50 ms"
    )
