"""One client's place in the load: a user keeps it going, and orders may come in between."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from gevent.lock import BoundedSemaphore

from loadtest.duplicate_process import DuplicateProcess
from loadtest.errors import LoadtestError
from loadtest.java_member import JavaMember
from loadtest.member import Member


class Client(Protocol):
    """What can be carried by a user."""

    def open(self) -> None:
        """Come to life, if it is not alive."""

    def poll_once(self) -> None:
        """Do what is due, without waiting."""

    def close(self) -> None:
        """End cleanly, if it is alive; other greenlets run meanwhile."""


class ClientHandle:
    """A client that a user keeps going and that orders may interrupt, one at a time.

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

    def poll_once(self) -> None:
        """Let the client do what is due."""
        with self._one_at_a_time:
            self._client.poll_once()

    def close(self) -> None:
        """Close the client for good; its user goes away."""
        with self._one_at_a_time:
            self._taken = False
            self._client.close()

    @contextmanager
    def _ordered(self) -> Iterator[None]:
        """Keep everybody else off the client. Raises LoadtestError without a user."""
        with self._one_at_a_time:
            if not self._taken:
                raise LoadtestError(f"no user runs {self._name!r} now; start more users")
            yield


class MemberHandle(ClientHandle):
    """The seat of a group member, and of the second process that may claim its identity.

    Every order raises LoadtestError if it makes no sense now.
    """

    def __init__(self, member: Member | JavaMember, duplicate: DuplicateProcess) -> None:
        super().__init__(member.config.name, member)
        self._member = member
        self._duplicate = duplicate

    def close(self) -> None:
        """Close the member for good, and end its duplicate."""
        try:
            self._duplicate.end()
        finally:
            super().close()

    def row(self) -> dict[str, Any]:
        """Return what `members` tells about this one."""
        return self._member.describe()

    def start(self) -> dict[str, Any]:
        """Open the member as what it was, if it is down."""
        with self._ordered():
            self._member.open()
        return self.row()

    def start_as(self, instance_id: str | None) -> dict[str, Any]:
        """Open the member under this instance id, or as a dynamic member if it is None."""
        with self._ordered():
            self._member.change_identity(instance_id)
            self._member.open()
        return self.row()

    def stop(self) -> dict[str, Any]:
        """Close the member, if it is up."""
        with self._ordered():
            self._member.close()
        return self.row()

    def kill(self) -> dict[str, Any]:
        """End the member as a crash does."""
        with self._ordered():
            self._member.kill()
        return self.row()

    def duplicate(self) -> dict[str, Any]:
        """Start a second process under the member's identity; return its client id and pid."""
        with self._ordered():
            config = self._member.config
        # Starting takes a while, and the member has to notice meanwhile that it is fenced.
        return self._duplicate.start(config)

    def end_duplicate(self) -> dict[str, Any]:
        """End that process as a crash does, if there is one; return the member's row."""
        self._duplicate.end()
        return self.row()
