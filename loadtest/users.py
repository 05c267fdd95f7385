"""Locust users: each leases one client of the pool and polls it."""

from typing import ClassVar

import gevent
from locust import User, constant, task

from loadtest.configs import ClientKind
from loadtest.members.member import Member
from loadtest.pool import ClientPool
from loadtest.producer import PacedProducer
from loadtest.timing import LEASE_EVERY_S, TASK_S


class ClientUser(User):
    """Leases a client, polls it, and releases it for the next user.

    `client_pool` is None while there is no cluster yet (see `load_session.py`).
    """

    abstract = True
    wait_time = constant(0)
    kind: ClassVar[ClientKind]
    client_pool: ClassVar[ClientPool | None] = None
    leased: Member | PacedProducer | None = None

    def on_start(self) -> None:
        """Lease a free client, as soon as there is one, and open it."""
        while (client_pool := self.client_pool) is None:
            gevent.sleep(LEASE_EVERY_S)
        self._pool = client_pool
        # None is free while an earlier user still closes: Locust does not wait for it.
        while (client := client_pool.lease(self.kind)) is None:
            gevent.sleep(LEASE_EVERY_S)
        self.leased = client
        client.open()

    @task
    def carry_on(self) -> None:
        """Poll the client for about a second, or once if it needs fewer polls."""
        assert self.leased is not None, "on_start comes first"
        every_s = self.leased.poll_every_s
        for _ in range(max(1, round(TASK_S / every_s))):
            self.leased.poll_once()
            gevent.sleep(every_s)

    def on_stop(self) -> None:
        """Close the client and release it."""
        if self.leased is None:
            return
        try:
            self.leased.close()
        finally:
            self._pool.release(self.leased.name)


class StaticMember(ClientUser):
    """A static member (KIP-345): it keeps its group.instance.id and sends no LeaveGroup."""

    kind = "static"


class DynamicMember(ClientUser):
    """A dynamic member: a new member id at every start, and a LeaveGroup at the end."""

    kind = "dynamic"


class Producer(ClientUser):
    """A producer at a constant rate."""

    kind = "producer"
