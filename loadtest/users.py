"""Locust users: each carries one client of the fleet and keeps it going."""

from typing import ClassVar

import gevent
from locust import User, constant, task

from loadtest.client_configs import Kind
from loadtest.client_pool import ClientPool
from loadtest.lease_pool import LeasePool
from loadtest.member import POLL_INTERVAL_S
from loadtest.member_handle import ClientHandle

WAIT_S = 0.1
POLLS_PER_TASK = 50
"""Turns in one Locust task, as a task costs more than a turn; --stop-timeout waits for one task."""


class ClientUser(User):
    """Leases a client, keeps it going and gives it back for the next user.

    `client_pool` is None while there is no cluster for it yet (see `session.py`).
    """

    abstract = True
    wait_time = constant(0)
    client_pool: ClassVar[ClientPool | None] = None
    handle: ClientHandle | None = None

    def pool(self, client_pool: ClientPool) -> LeasePool[ClientHandle]:
        """Return where this kind of user finds its clients."""
        raise NotImplementedError

    def on_start(self) -> None:
        """Lease the first free client and open it, as soon as there are any."""
        while (client_pool := self.client_pool) is None:
            gevent.sleep(WAIT_S)
        self._pool = self.pool(client_pool)
        # None is free while the user before us still closes: Locust may spawn before it is done.
        while (handle := self._pool.lease()) is None:
            gevent.sleep(WAIT_S)
        self.handle = handle
        handle.open()

    @task
    def carry_on(self) -> None:
        """Give the client its turns, for about a second."""
        assert self.handle is not None, "on_start comes first"
        for _ in range(POLLS_PER_TASK):
            self.handle.poll_once()
            gevent.sleep(POLL_INTERVAL_S)

    def on_stop(self) -> None:
        """Close the client and give it back."""
        if self.handle is None:
            return
        try:
            self.handle.close()
        finally:
            self._pool.release(self.handle)


class GroupMember(ClientUser):
    """A member of a consumer group."""

    abstract = True
    kind: ClassVar[Kind]

    def pool(self, client_pool: ClientPool) -> LeasePool[ClientHandle]:
        """Return the members of this kind."""
        return client_pool.members_of[self.kind]


class StaticMember(GroupMember):
    """A static member (KIP-345): it keeps its group.instance.id and leaves without a word."""

    kind = "static"


class DynamicMember(GroupMember):
    """A dynamic member: a new member id every time, and a LeaveGroup at the end."""

    kind = "dynamic"


class Producer(ClientUser):
    """A producer at a steady pace."""

    def pool(self, client_pool: ClientPool) -> LeasePool[ClientHandle]:
        """Return the producers."""
        return client_pool.producers
