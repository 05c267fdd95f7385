"""What a group protocol brings, as one declared bundle: the seam for a second protocol.

`reference_coordinator.classic.CLASSIC` is the first bundle. KIP-848's protocol would be another
package with a bundle of the same form. `replay(…, protocol=…)` takes from the bundle: `new_group`
(what a group is before its first event), `step` (the coordinator that brokers are compared with),
`bodies` (events and observed responses) and `as_sent` (what is compared). Commands and reports take
`profile_named` and `profile_for` from it, and the comparison takes `row_key`.

The rest of the replay is still classic. A second protocol needs its own form of each:

- Events that no request makes: `hypothesis` makes `TimerFired`, `RecordWritten`, `LoadStarted`,
  `Loaded`, `RequestsEnabled` and `Unloaded`. `pending_requests` and `backtracking` make `Choices`.
- Effects: `hypothesis`, `reactions` and `backtracking` match `Answer`, `Arm`, `Disarm`, `Persist`,
  `Bound`, `Transition` and `AssignmentReceived`.
- The group: `replay`, `clock`, `expected_lines`, `member_ids`, `options`, `pending_requests` and
  `reactions` read the fields and states of the classic `Group`.
- Timers: `hints`, `options` and `clock` know the kinds in `TimerKind`.
- Requests: the windows, hints and alternatives of JoinGroup, SyncGroup and LeaveGroup, and the
  remembered reactions to Heartbeat and OffsetCommit (`EXCHANGES`), go by their APIs' names.
- Responses: each has an `error`; `candidates`, `member_ids` and `adoption` know other fields.
- Profile: the replay reads how long writes and timers take, and `answers_wait_for_writes`,
  `overtaken_expiry_counts`, `failed_writes` and `answers_to`.
- Records: a coordinator epoch begins with the classic `GroupRecord` that the one before stored.
- Going on after a violation: `adoption` builds a classic group from a leader's JoinGroup response.
- Output: `result` builds rows of `ExpectedRebalance` from the classic transitions, and
  `expected_lines` names the lines of the classic coordinator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Group = TypeVar("Group")
Event = TypeVar("Event")
Effect = TypeVar("Effect")
Response = TypeVar("Response")
Profile = TypeVar("Profile")
Request_co = TypeVar("Request_co", covariant=True)
Response_co = TypeVar("Response_co", covariant=True)
Json = Mapping[str, Any]


class Observed(Protocol):
    """A request of the evidence, as far as its body is read: JSON fields of Kafka's schemas."""

    @property
    def id(self) -> str:
        """What names the request in events and effects."""

    @property
    def api(self) -> str:
        """The API's name in Kafka's request log."""

    @property
    def api_version(self) -> int:
        """The version of request and response."""

    @property
    def client_id(self) -> str:
        """The client id of the request header."""

    @property
    def client_host(self) -> str:
        """The host that the request came from, as DescribeGroups shows it."""

    @property
    def request(self) -> Json:
        """The body of the request."""

    @property
    def response_fields(self) -> Json:
        """The body of the response; there must be one."""


@dataclass(frozen=True, slots=True)
class Body(Generic[Request_co, Response_co]):
    """How the bodies of an API become events and responses.

    `event` takes a request, its time (ms) and the choices for what Kafka leaves open; `response`
    takes the bodies of request and response.
    """

    event: Callable[[Observed, float, Any], Request_co]
    response: Callable[[Json, Json], Response_co]


@dataclass(frozen=True, slots=True)
class GroupProtocol(Generic[Group, Event, Effect, Response, Profile]):
    """One group protocol: its state machine, its rules by release, its wire, its timeline."""

    new_group: Callable[[str], Group]
    """Makes the state of a group that does not exist yet, from its group id."""
    step: Callable[[Group, Event, Profile], tuple[Group, tuple[Effect, ...]]]
    """Decides what one event does to a group."""
    profile_named: Callable[[str], Profile | None]
    """Finds a profile by its name, such as `4.3` or `3.9.1-scala`."""
    profile_for: Callable[[str, str], Profile | None]
    """Finds the profile of a release with one of its coordinators, `scala` or `java`."""
    bodies: Mapping[str, Body[Event, Response]]
    """The requests that the protocol knows, by their API's name in Kafka's request log."""
    as_sent: Callable[[Response, int], Response]
    """Drops from a response the fields that its version does not have: what is compared."""
    row_key: tuple[str, ...]
    """The columns by which observed and expected rows of one group are compared first."""

    def event_of(self, seen: Observed, at_ms: float, choices: Any) -> Event:
        """Return the event of an observed request, acted on at a time (ms), with its choices."""
        return self.bodies[seen.api].event(seen, at_ms, choices)

    def response_of(self, seen: Observed) -> Response:
        """Return the observed response of a request; error codes stay numbers."""
        return self.bodies[seen.api].response(seen.request, seen.response_fields)
