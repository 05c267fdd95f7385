"""The duplicate of a member whose client is no librdkafka: a second one with its identity."""

from collections.abc import Callable
from typing import Any

from gevent.lock import BoundedSemaphore

from loadtest.client_configs import MemberConfig
from loadtest.command_member import CommandMember
from loadtest.errors import LoadtestError
from loadtest.wire_client_member import WireClientMember

Made = CommandMember | WireClientMember


class DuplicateMember:
    """A second client under the identity of a member; at most one at a time.

    `make` returns a member that is down.
    """

    def __init__(self, make: Callable[[MemberConfig], Made]) -> None:
        self._make = make
        self._member: Made | None = None
        self._one_at_a_time = BoundedSemaphore()

    def start(self, original: MemberConfig) -> dict[str, Any]:
        """Start it; return its `client_id`, and the `pid` of its process.

        Raises LoadtestError if one runs already, if it cannot be started, or if the member is
        dynamic.
        """
        config = original.as_duplicate()
        with self._one_at_a_time:
            if self._member is not None:
                raise LoadtestError(
                    f"{original.name!r} has a duplicate already, {config.name!r};"
                    " end that first (end-duplicate)"
                )
            member = self._make(config)
            member.open()
            self._member = member
            return {"client_id": config.name, "pid": member.pid}

    def end(self) -> None:
        """Kill it, if there is one, and wait until it is gone."""
        with self._one_at_a_time:
            if self._member is None:
                return
            self._member.poll_once()  # it may have ended by itself
            if self._member.is_up:
                self._member.kill()
            self._member = None
