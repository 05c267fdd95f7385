"""groupquake's own client, in a greenlet of the load's process.

It costs a fraction of what a librdkafka consumer does, so that one process holds thousands.
"""

import os

import gevent
from gevent.event import Event

from loadtest.errors import LoadtestError
from loadtest.members.member import Client, Member
from loadtest.members.security import client_properties
from loadtest.timing import LEAVE_S
from loadtest.wire.client import GroupClient
from loadtest.wire.connection import WireError
from loadtest.wire.member import FencedError
from scenarios.client_properties import PropertiesError


class WireClient(Client):
    """A `GroupClient` in a greenlet. Raises LoadtestError for what it cannot use.

    `pause` freezes it alone: the socket stays open, and nothing is sent or acted upon.
    """

    def __init__(self, member: Member, bootstrap: str) -> None:
        self.pid = os.getpid()
        self._member = member
        self._goes_on = Event()
        try:
            self._client = GroupClient(
                member.config,
                bootstrap,
                client_properties(),
                member,
                gate=self._goes_on.wait,
                application_polls=lambda: self._polls,
            )
        except (OSError, ValueError, PropertiesError) as error:
            raise LoadtestError(f"{member.name!r} cannot be started: {error}") from error
        self.resume()
        self._greenlet = gevent.spawn(self._run)

    def poll_once(self) -> None:
        """Do nothing: its greenlet does all."""

    def stop_polling(self) -> None:
        """Let the application poll no more."""
        self._polls = False

    def unsubscribe(self) -> None:
        """Be out of the group at once: as Kafka's own client, a static member sends nothing."""
        self._polls = False
        self._client.unsubscribe()

    def pause(self) -> None:
        """Freeze it; its timers run on, and what they are for comes late."""
        self._goes_on.clear()

    def resume(self) -> None:
        """Let it go on, and let its application poll topics."""
        self._polls = True
        self._goes_on.set()

    def close(self) -> None:
        """Close cleanly: a dynamic member leaves its group, a static one does not (KIP-345).

        If its LeaveGroup gets no answer, it ends as by `kill`.
        """
        try:
            self._greenlet.kill()
            self.resume()
            self._client.leave("the consumer is being closed", LEAVE_S)
            self.closed = True
        except WireError as error:
            self._member.error(str(error))
        finally:
            self._client.disconnect()

    def kill(self) -> None:
        """End as a crash would."""
        try:
            self._greenlet.kill()
        finally:  # also if the greenlet that ends it is killed meanwhile
            self._client.disconnect()

    def _run(self) -> None:
        try:
            self._client.run()
        except FencedError as error:
            self._client.disconnect()
            self.closed = True
            self._member.fenced(str(error))
            self._member.over(self, "fenced")
        except Exception as error:  # noqa: BLE001 (else it would look alive for ever)
            self._client.disconnect()
            self._member.over(self, "failed")
            self._member.fail(f"the client ended: {type(error).__name__}: {error}")
