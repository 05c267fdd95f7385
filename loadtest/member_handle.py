"""Handles of clients: a Locust user polls the client, and control commands may come in between."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from gevent.lock import BoundedSemaphore

from kafka_protocol.printable import printable
from loadtest.base_member import BaseMember
from loadtest.duplicate_member import DuplicateMember
from loadtest.duplicate_process import DuplicateProcess
from loadtest.errors import LoadtestError

_LOG = logging.getLogger(__name__)


class Client(Protocol):
    """What a handle needs of a client."""

    @property
    def poll_every_s(self) -> float:
        """How often it has to be polled."""

    def open(self) -> None:
        """Start the client, if it is not up. Raises LoadtestError if it cannot be started."""

    def fail(self, why: str) -> None:
        """Take note that it could not be started."""

    def poll_once(self) -> None:
        """Poll once, without waiting."""

    def close(self) -> None:
        """Close cleanly, if it is up; other greenlets run meanwhile."""


class ClientHandle:
    """A client for one Locust user and for control commands, one call at a time.

    Commands are refused while no user has the handle, since nothing would poll the client.
    """

    def __init__(self, name: str, client: Client) -> None:
        self.poll_every_s = client.poll_every_s
        self.name = name
        self._client = client
        self._has_user = False
        self._one_at_a_time = BoundedSemaphore()

    def open(self) -> None:
        """Open the client for a user, which polls it from now on.

        One that cannot be started has failed: it stays down until a command starts it.
        """
        with self._one_at_a_time:
            self._has_user = True
            try:
                self._client.open()
            except LoadtestError as error:
                _LOG.warning("%s", printable(str(error)))
                self._client.fail(str(error))

    def poll_once(self) -> None:
        """Poll the client once."""
        with self._one_at_a_time:
            self._client.poll_once()

    def close(self) -> None:
        """Close the client; its user ends."""
        with self._one_at_a_time:
            self._has_user = False
            self._client.close()

    @contextmanager
    def _locked_for_command(self) -> Iterator[None]:
        """Lock the client for a command. Raises LoadtestError without a user."""
        with self._one_at_a_time:
            if not self._has_user:
                raise LoadtestError(f"no user runs {self.name!r} now; start more users")
            yield


class MemberHandle(ClientHandle):
    """The handle of a group member, and of its duplicate process.

    Every command raises LoadtestError if the member's state does not allow it.
    """

    def __init__(self, member: BaseMember, duplicate: DuplicateProcess | DuplicateMember) -> None:
        super().__init__(member.config.name, member)
        self._member = member
        self._duplicate = duplicate

    def close(self) -> None:
        """Close the member, and kill its duplicate."""
        try:
            self._duplicate.end()
        finally:
            super().close()

    def row(self) -> dict[str, Any]:
        """Return the member's row."""
        return self._member.describe()

    def start(self) -> dict[str, Any]:
        """Open the member under its last identity, if it is down."""
        with self._locked_for_command():
            self._member.open()
        return self.row()

    def start_as(self, instance_id: str | None) -> dict[str, Any]:
        """Open the member under this instance id, or as a dynamic member if it is None."""
        with self._locked_for_command():
            self._member.change_identity(instance_id)
            self._member.open()
        return self.row()

    def stop(self) -> dict[str, Any]:
        """Close the member, if it is up."""
        with self._locked_for_command():
            self._member.close()
        return self.row()

    def kill(self) -> dict[str, Any]:
        """End the member as a crash would."""
        with self._locked_for_command():
            self._member.kill()
        return self.row()

    def pause(self) -> dict[str, Any]:
        """Freeze the member's process."""
        with self._locked_for_command():
            self._member.pause()
        return self.row()

    def stop_polling(self) -> dict[str, Any]:
        """Let the member's application poll no more."""
        with self._locked_for_command():
            self._member.stop_polling()
        return self.row()

    def resume(self) -> dict[str, Any]:
        """Undo `pause` and `stop_polling`, if the member is up."""
        with self._locked_for_command():
            self._member.resume()
        return self.row()

    def duplicate(self) -> dict[str, Any]:
        """Start a second process under the member's identity; return its client id and pid."""
        with self._locked_for_command():
            config = self._member.config
        # Without the lock: while the duplicate starts, polls must see that the member is fenced.
        return self._duplicate.start(config)

    def end_duplicate(self) -> dict[str, Any]:
        """Kill the duplicate, if it runs; return the member's row."""
        self._duplicate.end()
        return self.row()
