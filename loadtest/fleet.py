"""All clients of this process, and who may touch which of them at the moment."""

from typing import Any, Protocol, get_args

from gevent.lock import BoundedSemaphore

from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.identity import LeasePool
from loadtest.member import Member
from loadtest.off_hub import Threads
from loadtest.producer import PacedProducer
from loadtest.reporting import to_locust
from loadtest.roster import Kind, Roster


class Client(Protocol):
    """What can be carried by a user."""

    def open(self) -> None:
        """Come to life, if it is not alive."""

    def turn(self) -> None:
        """Do what is due, without waiting."""

    def close(self) -> None:
        """End cleanly, if it is alive; other greenlets run meanwhile."""


class Seat:
    """A client that a user keeps going and that orders may stop and start, one at a time.

    Orders are refused while no user has taken the seat, since nobody would give the client turns.
    """

    def __init__(self, name: str, client: Client) -> None:
        self._name = name
        self._client = client
        self._taken = False
        self._one_at_a_time = BoundedSemaphore()

    def open(self) -> None:
        """Open the client for a user, who gives it its turns from now on."""
        with self._one_at_a_time:
            self._taken = True
            self._client.open()

    def turn(self) -> None:
        """Let the client do what is due."""
        with self._one_at_a_time:
            self._client.turn()

    def close(self) -> None:
        """Close the client for good; its user goes away."""
        with self._one_at_a_time:
            self._taken = False
            self._client.close()

    def start(self) -> None:
        """Open the client by order, if it is down. Raises LoadtestError without a user."""
        with self._one_at_a_time:
            self._require_user()
            self._client.open()

    def stop(self) -> None:
        """Close the client by order, if it is up. Raises LoadtestError without a user."""
        with self._one_at_a_time:
            self._require_user()
            self._client.close()

    def _require_user(self) -> None:
        if not self._taken:
            raise LoadtestError(f"no user runs {self._name!r} now; start more users")


class Fleet:
    """The clients of a roster, made once and leased to users as they come and go."""

    def __init__(self, roster: Roster, bootstrap: str, history: History, events: Any) -> None:
        off_hub = Threads(len(roster))
        self._members: dict[str, Member] = {}
        self._seats: dict[str, Seat] = {}
        for member in roster.members:
            report = to_locust(events, member.kind.upper())
            client = Member(member, bootstrap, history, report, off_hub)
            self._members[member.name] = client
            self._seats[member.name] = Seat(member.name, client)
        for producer in roster.producers:
            report = to_locust(events, "PRODUCER")
            paced = PacedProducer(producer, bootstrap, history, report, off_hub)
            self._seats[producer.name] = Seat(producer.name, paced)
        self.members_of: dict[Kind, LeasePool[Seat]] = {
            kind: LeasePool(self._seats[member.name] for member in roster.of_kind(kind))
            for kind in get_args(Kind)
        }
        self.producers = LeasePool(self._seats[producer.name] for producer in roster.producers)

    def members(self) -> list[dict[str, Any]]:
        """Return a row for every member of the roster, in its order."""
        return [member.describe() for member in self._members.values()]

    def start(self, name: str) -> dict[str, Any]:
        """Start a member and return its row. Raises LoadtestError if that cannot be."""
        member = self._member(name)
        self._seats[name].start()
        return member.describe()

    def stop(self, name: str) -> dict[str, Any]:
        """Stop a member and return its row once it is closed. Raises LoadtestError."""
        member = self._member(name)
        self._seats[name].stop()
        return member.describe()

    def close(self) -> None:
        """Close whatever is open still, and wait for whatever somebody else is closing."""
        for seat in self._seats.values():
            seat.close()

    def _member(self, name: str) -> Member:
        try:
            return self._members[name]
        except KeyError:
            raise LoadtestError(
                f"no member is called {name!r}; ask `members` who there is"
            ) from None
