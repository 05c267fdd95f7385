"""The network between brokers in containers: isolating a broker from the others, slowing it down.

Commands run as root in the network namespaces of the containers, which need NET_ADMIN. Clients come
through published ports, from the network's gateway, and are not hit.

A broker is isolated by a wrong hardware address for each other broker, and for it in each of
theirs: packets vanish both ways, without an error on either side, as on a network that loses them
all. A blackhole route would tell the sender at once. A slow link is a class of `tc-htb` that
filters fill by destination.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from chaos.errors import ClusterError
from chaos.timing import BROKER_CONNECT_S

if TYPE_CHECKING:
    from chaos.clusters.docker import ContainerBroker

Change = Literal["part", "slow"]
"""What is done to the network of a broker."""

BETWEEN_BROKERS = 19092
"""The port at which a broker in a container takes connections of the others."""
_NOWHERE = "02:00:00:00:00:00"
"""A locally administered address that the engine gives to no container."""
_DEVICE = "eth0"
"""What the engine calls the one network of a container."""
_NOBODY = "192.0.2.1"
"""An address for documentation (RFC 5737), to try commands with."""
_TIMED_OUT = 124
"""The exit code of timeout(1) if a command takes longer."""
_NEEDS: Mapping[Change, str] = {
    "part": "broker.partition needs ip, timeout and bash in the image",
    "slow": "broker.slow-network needs tc in the image, and a kernel with htb and u32",
}


@dataclass(frozen=True, slots=True)
class Shaped:
    """What a slow link has done: the bytes that were sent over it, and how often packets waited."""

    sent: int
    waited: int


class Cut(NamedTuple):
    """That a broker, by id, sends nothing to another, at an address."""

    broker: int
    other: int
    address: str


@dataclass(slots=True)
class BrokerNetwork:
    """The network between brokers; `brokers` by id. Every method raises ClusterError."""

    brokers: Mapping[int, "ContainerBroker"]
    _isolated: set[int] = field(default_factory=set)
    _cuts: list[Cut] = field(default_factory=list)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def require(self, changes: Collection[Change]) -> None:
        """Try, on a broker, what these changes need, and undo it; nothing passes differently."""
        node = self.brokers[min(self.brokers)]
        for change in sorted(changes):
            try:
                if change == "part":
                    _cut(node, _NOBODY)
                    _mend(node, _NOBODY)
                    _run(node, *_within_time("true"))
                else:
                    _shape(node, (_NOBODY,), "1gbit")
                    _unshape(node)
            except ClusterError as error:
                raise ClusterError(
                    f"{_NEEDS[change]} ({error}); use the image of `groupquake dev image build`, or"
                    " leave the fault out"
                ) from error

    def part(self, broker: int) -> None:
        """Let nothing pass between a broker and the others."""
        with self._changing:
            self._isolated.add(broker)
            for other in self._others(broker):
                for one, far in ((broker, other), (other, broker)):
                    cut = Cut(one, far, self.brokers[far].address)
                    self._cuts.append(cut)
                    _cut(self.brokers[one], cut.address)

    def join(self, broker: int) -> None:
        """Undo `part`, complete or not; what another isolated broker was cut from stays cut.

        What cannot be mended, as in a paused container, hinders no other, and the next call tries
        it again.
        """
        errors = []
        with self._changing:
            self._isolated.discard(broker)
            for cut in [one for one in self._cuts if broker in (one.broker, one.other)]:
                if not self._isolated.isdisjoint((cut.broker, cut.other)):
                    continue
                try:
                    if self.brokers[cut.broker].runs:
                        _mend(self.brokers[cut.broker], cut.address)
                    self._cuts.remove(cut)
                except ClusterError as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def slow(self, broker: int, rate: str) -> None:
        """Send no more than this (`256kbit`) from a broker to the others."""
        others = [self.brokers[other].address for other in self._others(broker)]
        _shape(self.brokers[broker], others, rate)

    def unslow(self, broker: int) -> None:
        """Undo `slow`, complete or not."""
        if self.brokers[broker].runs:
            _unshape(self.brokers[broker])

    def shaped(self, broker: int) -> Shaped:
        """Return what the slow link of a broker has done since `slow`."""
        code, said = self.brokers[broker].execute("tc", "-s", "class", "show", "dev", _DEVICE)
        words = said.replace(",", " ").replace(")", " ").split()
        try:
            sent, waited = words[words.index("Sent") + 1], words[words.index("overlimits") + 1]
            return Shaped(int(sent), int(waited))
        except (ValueError, IndexError):
            raise _failed("tc class show", code, said) from None

    def reaches(self, broker: int) -> tuple[int, ...]:
        """Return the other brokers that take a TCP connection from a broker."""
        node = self.brokers[broker]
        found = []
        for other in self._others(broker):
            door = f"exec 3<>/dev/tcp/{self.brokers[other].address}/{BETWEEN_BROKERS}"
            code, said = node.execute(*_within_time(door))
            if code not in (0, 1, _TIMED_OUT):
                raise _failed("bash", code, said)
            if code == 0:
                found.append(other)
        return tuple(found)

    def _others(self, broker: int) -> tuple[int, ...]:
        """Return the other brokers that run."""
        return tuple(node for node, it in self.brokers.items() if node != broker and it.runs)


def _cut(node: "ContainerBroker", address: str) -> None:
    """Send what goes to an address nowhere."""
    _run(node, *f"ip neigh replace {address} lladdr {_NOWHERE} dev {_DEVICE} nud permanent".split())


def _mend(node: "ContainerBroker", address: str) -> None:
    """Undo `_cut`, done or not: the next packet asks for the address again."""
    _run(node, *f"ip neigh flush to {address} dev {_DEVICE} nud permanent".split())


def _shape(node: "ContainerBroker", addresses: Collection[str], rate: str) -> None:
    """Let what goes to addresses share a rate, and pass all else by."""
    _unshape(node)
    to_addresses = f"tc filter add dev {_DEVICE} parent 1: protocol ip prio 1 u32 match ip dst"
    for command in (
        f"tc qdisc add dev {_DEVICE} root handle 1: htb default 0",
        f"tc class add dev {_DEVICE} parent 1: classid 1:1 htb rate {rate}",
        *(f"{to_addresses} {address}/32 flowid 1:1" for address in addresses),
    ):
        _run(node, *command.split())


def _unshape(node: "ContainerBroker") -> None:
    """Undo `_shape`, done in part or not at all."""
    if " htb " in _run(node, "tc", "qdisc", "show", "dev", _DEVICE):
        _run(node, "tc", "qdisc", "del", "dev", _DEVICE, "root")


def _within_time(script: str) -> tuple[str, ...]:
    return ("timeout", str(BROKER_CONNECT_S), "bash", "-c", script)


def _run(node: "ContainerBroker", *command: str) -> str:
    code, said = node.execute(*command)
    if code != 0:
        raise _failed(" ".join(command), code, said)
    return said


def _failed(command: str, code: int, said: str) -> ClusterError:
    why = " ".join(said.split())[:200] or f"exit code {code}"
    return ClusterError(f"`{command}` in the broker's container: {why}")
