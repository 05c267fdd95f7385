"""The network between brokers: which packets would pass, by the commands that were run."""

import re
from dataclasses import dataclass, field

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.broker_network import BrokerNetwork


@dataclass
class FakeBroker:
    """A container with a table of neighbours and a queueing discipline, as iproute2 has them."""

    address: str
    runs: bool = True
    paused: bool = False
    nowhere: set[str] = field(default_factory=set)
    filtered: set[str] | None = None
    lacks: tuple[str, ...] = ()

    def execute(self, *command: str) -> tuple[int, str]:
        if not self.runs:
            raise ClusterError("it does not run")
        if self.paused:
            raise ClusterError("it is paused")
        if command[0] in self.lacks:
            return 126, f'exec: "{command[0]}": executable file not found in $PATH'
        match command:
            case ("ip", "neigh", "replace", address, *_):
                self.nowhere.add(address)
            case ("ip", "neigh", "flush", "to", address, *_):
                self.nowhere.discard(address)
            case ("tc", "qdisc", "show", *_):
                return 0, "qdisc noqueue 0: root" if self.filtered is None else "qdisc htb 1: root"
            case ("tc", "qdisc", "add", *_):
                self.filtered = set()
            case ("tc", "qdisc", "del", *_):
                if self.filtered is None:
                    return 2, "Error: Cannot delete qdisc with handle of zero."
                self.filtered = None
            case ("tc", "filter", "add", *words):
                assert self.filtered is not None
                found = re.search("match ip dst ([0-9.]+)/32", " ".join(words))
                assert found
                self.filtered.add(found[1])
        return 0, ""


@pytest.fixture
def brokers() -> dict[int, FakeBroker]:
    return {node: FakeBroker(f"10.0.0.{node}") for node in (1, 2, 3)}


def passes(brokers: dict[int, FakeBroker]) -> set[tuple[int, int]]:
    """The pairs of brokers between which packets pass from the first to the second."""
    return {
        (one, other)
        for one in brokers
        for other in brokers
        if one != other and brokers[other].address not in brokers[one].nowhere
    }


ALL = {(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)}


def test_nothing_passes_to_those_that_are_parted_until_each_is_joined(
    brokers: dict[int, FakeBroker],
) -> None:
    network = BrokerNetwork(brokers)
    network.part(1)
    assert passes(brokers) == {(2, 3), (3, 2)}
    network.part(2)
    assert passes(brokers) == set()
    network.join(1)
    assert passes(brokers) == {(1, 3), (3, 1)}
    for _ in range(2):  # a heal may come twice
        network.join(2)
        assert passes(brokers) == ALL


def test_one_that_is_down_neither_hinders_nor_stays_cut(brokers: dict[int, FakeBroker]) -> None:
    network = BrokerNetwork(brokers)
    brokers[3].runs = False
    network.part(1)
    assert passes(brokers) == {(1, 3), (3, 1), (2, 3), (3, 2)}
    brokers[3].runs, brokers[2].runs = True, False
    network.join(1)
    brokers[2].nowhere.clear()  # its network is a new one when it starts again
    assert passes(brokers) == ALL


def test_one_that_is_paused_hinders_no_other_and_is_joined_later(
    brokers: dict[int, FakeBroker],
) -> None:
    network = BrokerNetwork(brokers)
    network.part(1)
    brokers[2].paused = True
    with pytest.raises(ClusterError, match="paused"):
        network.join(1)
    assert brokers[1].nowhere == set()
    assert brokers[3].nowhere == set()
    brokers[2].paused = False
    network.join(1)
    assert brokers[2].nowhere == set()


def test_a_slow_link_is_to_brokers_alone(brokers: dict[int, FakeBroker]) -> None:
    network = BrokerNetwork(brokers)
    network.slow(2, "64kbit")
    network.slow(2, "32kbit")
    assert brokers[2].filtered == {"10.0.0.1", "10.0.0.3"}
    assert brokers[1].filtered is None
    network.unslow(2)
    network.unslow(2)
    assert brokers[2].filtered is None


@pytest.mark.parametrize(
    ("change", "tool", "said"),
    [
        ("part", "ip", r"broker\.partition needs ip, timeout and bash in the image .*not found"),
        ("part", "timeout", r"broker\.partition needs ip, timeout and bash in the image"),
        ("slow", "tc", r"broker\.slow-network needs tc in the image, and a kernel with htb"),
    ],
)
def test_an_image_that_lacks_a_tool_is_told_of(
    brokers: dict[int, FakeBroker], change: str, tool: str, said: str
) -> None:
    network = BrokerNetwork(brokers)
    network.require(("part", "slow"))
    assert passes(brokers) == ALL
    assert not any(one.nowhere or one.filtered is not None for one in brokers.values())
    brokers[1].lacks = (tool,)
    with pytest.raises(ClusterError, match=said):
        network.require((change,))  # type: ignore[arg-type]  # one of two
