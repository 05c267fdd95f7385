"""What every group member has, whatever client it runs: an identity, partitions, and a row."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

from loadtest.client_configs import MemberConfig
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.locust_statistics import StatisticRecorder

State = Literal["starting", "joined", "stopped", "killed", "fenced", "failed"]
"""`joined` from the first assignment until the membership is lost: also while the group rebalances.

A cooperative assignor's client does not say that its membership is lost if it had no partitions.
All but `starting` and `joined` have no client any more and stay down until they are opened again.
"""


class BaseMember(ABC):
    """One name in one group; it may come and go for as long as a run lasts.

    `recorder_for` makes a `StatisticRecorder` for the statistics of a kind, `STATIC` or `DYNAMIC`.
    """

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
        self._tell = partial(
            self._history.write, member=config.name, group=config.group, kind=config.kind
        )

    @property
    @abstractmethod
    def is_up(self) -> bool:
        """Whether there is a client that carries the identity."""

    def describe(self) -> dict[str, Any]:
        """Return the row that the control channel's `members` gives for this member.

        `joins` counts the assignments received since the run began, over all restarts.
        """
        return {
            "name": self.config.name,
            "group": self.config.group,
            "kind": self.config.kind,
            "instance_id": self.config.instance_id,
            "state": self.state,
            "member_id": self.member_id,
            "partitions": names(self._partitions),
            "joins": self.joins,
        }

    def change_identity(self, instance_id: str | None) -> None:
        """Be static under this instance id from the next `open` on, or dynamic if it is None.

        The name, and with it the client.id, stays. Raises LoadtestError while it is up, unless it
        has that identity.
        """
        if instance_id == self.config.instance_id:
            return
        if self.is_up:
            raise LoadtestError(
                f"{self.config.name!r} is up as {self.config.instance_id or 'a dynamic member'};"
                " stop or kill it before it comes back as something else"
            )
        self._identify(self.config.with_instance_id(instance_id))

    def _disown(self) -> list[str]:
        """Own nothing any more; return what was owned."""
        partitions = names(self._partitions)
        self._partitions.clear()
        return partitions


def names(partitions: Iterable[tuple[str, int]]) -> list[str]:
    """Return partitions as `topic-number`, in the order of topic and number."""
    return [f"{topic}-{number}" for topic, number in sorted(partitions)]
