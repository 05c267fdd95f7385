"""What group members of all clients share: identity, state, partitions and their control row."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

from loadtest.client_configs import MemberConfig
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.locust_statistics import StatisticRecorder

State = Literal["starting", "joined", "stopped", "killed", "fenced", "failed", "unknown"]
"""`joined` lasts from the first assignment until the membership is lost, through rebalances.

With a cooperative assignor, the client does not report a lost membership without partitions.
Members in the states after `joined` have no client until they are opened again; `unknown` is one
whose worker does not answer.
"""


POLL_EVERY_S = 0.015
"""The time between two polls of librdkafka: with 10 to 20 ms, assignments are seen as early as by a
thread."""


class BaseMember(ABC):
    """One member name in one group; it may restart many times during a run.

    `recorder_for` returns the `StatisticRecorder` of a kind, `STATIC` or `DYNAMIC`.
    """

    poll_every_s = POLL_EVERY_S

    def __init__(
        self,
        config: MemberConfig,
        bootstrap: str,
        history: History,
        recorder_for: Callable[[str], StatisticRecorder],
    ) -> None:
        self.state: State = "stopped"
        self.member_id: str | None = None
        self.joins = 0
        self._partitions: set[tuple[str, int]] = set()
        self._bootstrap = bootstrap
        self._history = history
        self._report_as = recorder_for
        self._identify(config)

    def _identify(self, config: MemberConfig) -> None:
        self.config = config
        self._report = self._report_as(config.kind.upper())
        self._write_event = partial(
            self._history.write, member=config.name, group=config.group, kind=config.kind
        )

    @property
    @abstractmethod
    def is_up(self) -> bool:
        """Whether there is a running client."""

    def describe(self) -> dict[str, Any]:
        """Return the member's row in the result of the control command `members`.

        `joins` counts assignments since the run began, over all restarts.
        """
        return row(
            self.config, self.state, self.member_id, names(self._partitions), joins=self.joins
        )

    def pause(self) -> None:
        """Freeze the client, all its threads. Raises LoadtestError if it cannot be."""
        raise LoadtestError(
            f"{self.config.name!r} shares the process of the load, which cannot be frozen for one"
            " member; give it client: librdkafka-process"
        )

    @abstractmethod
    def open(self) -> None:
        """Start the client, if it is not up. Raises LoadtestError if it cannot be started."""

    def fail(self, why: str, **more: Any) -> None:
        """Take note that the client ended by itself, or could not be started: it stays down."""
        self.state = "failed"
        self._write_event("ended", error=why, **more)
        self._report("error", None, error=why)

    @abstractmethod
    def poll_once(self) -> None:
        """Poll once, without waiting."""

    @abstractmethod
    def close(self) -> None:
        """Close cleanly, if it is up; other greenlets run meanwhile."""

    @abstractmethod
    def kill(self) -> None:
        """End the client as a crash would. Raises LoadtestError if it is not up."""

    @abstractmethod
    def stop_polling(self) -> None:
        """Let the application poll no more, while the client's own threads go on.

        Raises LoadtestError if it is not up.
        """

    @abstractmethod
    def resume(self) -> None:
        """Undo `pause` and `stop_polling`, if the member is up."""

    def change_identity(self, instance_id: str | None) -> None:
        """Set the instance id for the next `open`; None makes the member dynamic.

        Name and client.id stay. Raises LoadtestError if the member is up under another identity.
        """
        if instance_id == self.config.instance_id:
            return
        if self.is_up:
            raise LoadtestError(
                f"{self.config.name!r} is up as {self.config.instance_id or 'a dynamic member'};"
                " stop or kill it before you start it with another identity"
            )
        self._identify(self.config.with_instance_id(instance_id))

    def _disown(self) -> list[str]:
        """Drop all partitions; return what was owned."""
        partitions = names(self._partitions)
        self._partitions.clear()
        return partitions


def row(
    config: MemberConfig,
    state: State,
    member_id: str | None = None,
    partitions: Iterable[str] = (),
    *,
    joins: int = 0,
) -> dict[str, Any]:
    """Return a member's row; without more than a state, of one that no process runs."""
    return {
        "name": config.name,
        "group": config.group,
        "kind": config.kind,
        "instance_id": config.instance_id,
        "state": state,
        "member_id": member_id,
        "partitions": list(partitions),
        "joins": joins,
    }


def names(partitions: Iterable[tuple[str, int]]) -> list[str]:
    """Return partitions as `topic-number`, sorted."""
    return [f"{topic}-{number}" for topic, number in sorted(partitions)]
