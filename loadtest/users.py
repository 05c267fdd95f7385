"""Locust users: each carries one client of the fleet and keeps it going."""

from typing import ClassVar

import gevent
from locust import User, constant, task

from loadtest.client_pool import Fleet
from loadtest.identity import LeasePool
from loadtest.member import TURN_S
from loadtest.member_handle import Seat
from loadtest.roster import Kind

WAIT_S = 0.1
TURNS = 50
"""Turns in one Locust task, as a task costs more than a turn; --stop-timeout waits for one task."""


class FleetUser(User):
    """Leases a client, keeps it going and gives it back for the next user.

    `fleet` is None while there is no cluster for it yet (see `stage.py`).
    """

    abstract = True
    wait_time = constant(0)
    fleet: ClassVar[Fleet | None] = None
    seat: Seat | None = None

    def pool(self, fleet: Fleet) -> LeasePool[Seat]:
        """Return where this kind of user finds its clients."""
        raise NotImplementedError

    def on_start(self) -> None:
        """Lease the first free client and open it, as soon as there are any."""
        while (fleet := self.fleet) is None:
            gevent.sleep(WAIT_S)
        self._pool = self.pool(fleet)
        # None is free while the user before us still closes: Locust may spawn before it is done.
        while (seat := self._pool.lease()) is None:
            gevent.sleep(WAIT_S)
        self.seat = seat
        seat.open()

    @task
    def carry_on(self) -> None:
        """Give the client its turns, for about a second."""
        assert self.seat is not None, "on_start comes first"
        for _ in range(TURNS):
            self.seat.turn()
            gevent.sleep(TURN_S)

    def on_stop(self) -> None:
        """Close the client and give it back."""
        if self.seat is None:
            return
        try:
            self.seat.close()
        finally:
            self._pool.release(self.seat)


class GroupMember(FleetUser):
    """A member of a consumer group."""

    abstract = True
    kind: ClassVar[Kind]

    def pool(self, fleet: Fleet) -> LeasePool[Seat]:
        """Return the members of this kind."""
        return fleet.members_of[self.kind]


class StaticMember(GroupMember):
    """A static member (KIP-345): it keeps its group.instance.id and leaves without a word."""

    kind = "static"


class DynamicMember(GroupMember):
    """A dynamic member: a new member id every time, and a LeaveGroup at the end."""

    kind = "dynamic"


class Producer(FleetUser):
    """A producer at a steady pace."""

    def pool(self, fleet: Fleet) -> LeasePool[Seat]:
        """Return the producers."""
        return fleet.producers
