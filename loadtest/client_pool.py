"""All clients of this process, made once and leased to users as they come and go."""

from functools import partial
from typing import Any, get_args

from loadtest.duplicate_process import DuplicateProcess
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.identity import LeasePool
from loadtest.java_member import JavaMember
from loadtest.member import Member
from loadtest.member_handle import MemberSeat, Seat
from loadtest.off_hub import Threads
from loadtest.producer import PacedProducer
from loadtest.reporting import to_locust
from loadtest.roster import Kind, Roster


class Fleet:
    """The clients of a roster. `events` are those of Locust's environment."""

    def __init__(self, roster: Roster, bootstrap: str, history: History, events: Any) -> None:
        off_hub = Threads(len(roster))
        report_as = partial(to_locust, events)
        self._members = {
            config.name: MemberSeat(
                JavaMember(config, bootstrap, history, report_as)
                if config.client == "java"
                else Member(config, bootstrap, history, report_as, off_hub),
                DuplicateProcess(bootstrap, history),
            )
            for config in roster.members
        }
        self._producers = {
            config.name: Seat(
                config.name,
                PacedProducer(config, bootstrap, history, report_as("PRODUCER"), off_hub),
            )
            for config in roster.producers
        }
        self.members_of: dict[Kind, LeasePool[Seat]] = {
            kind: LeasePool(self._members[config.name] for config in roster.of_kind(kind))
            for kind in get_args(Kind)
        }
        self.producers = LeasePool(self._producers.values())

    def members(self) -> list[dict[str, Any]]:
        """Return a row for every member of the roster, in its order."""
        return [seat.row() for seat in self._members.values()]

    def seat(self, name: str) -> MemberSeat:
        """Return the seat of a member. Raises LoadtestError if nobody is called so."""
        try:
            return self._members[name]
        except KeyError:
            raise LoadtestError(
                f"no member is called {name!r}; ask `members` who there is"
            ) from None

    def close(self) -> None:
        """Close whatever is open still, and wait for whatever somebody else is closing."""
        for seat in (*self._members.values(), *self._producers.values()):
            seat.close()
