"""What the runner asks of the cluster as an administrator: topics, and how groups are."""

from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.errors import ChaosError
from groupquake.exits import NotSteadyError
from scenarios import Experiment

TIMEOUT_S = 30.0
PROBE_S = 5.0


class KafkaAdmin:
    """An admin client for one run."""

    def __init__(self, bootstrap: str) -> None:
        """Connect on first use; `log_level` keeps a stopping broker from filling the screen."""
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def create_topics(self, experiment: Experiment) -> None:
        """Create the experiment's topics."""
        topics = [
            NewTopic(topic.name, topic.partitions, topic.replication_factor)
            for topic in experiment.workload.topics
        ]
        for name, future in self._client.create_topics(topics).items():
            try:
                future.result(TIMEOUT_S)
            except (KafkaException, TimeoutError) as error:
                raise NotSteadyError(
                    f"topic {name} could not be created: {_told(error)}; see brokers/*/server.log"
                ) from error

    def probes(self) -> Mapping[str, Callable[[str], int | str]]:
        """Return the probe functions that steady states may name."""
        return {"group.members": self._members, "group.state": self._state}

    def _members(self, group: str) -> int:
        return len(self._describe(group).members)

    def _state(self, group: str) -> str:
        name = self._describe(group).state.name
        return _STATES.get(name, name)

    def _describe(self, group: str):
        """Describe a group; the client library has no types."""
        try:
            return self._client.describe_consumer_groups([group])[group].result(PROBE_S)
        except (KafkaException, TimeoutError) as error:
            raise ChaosError(f"cannot be described: {_told(error)}") from error


def _told(error: Exception) -> str:
    """Say what went wrong; a time-out has no words of its own."""
    return error.args[0].str() if isinstance(error, KafkaException) else "no broker answers"


_STATES = {
    "STABLE": "Stable",
    "EMPTY": "Empty",
    "DEAD": "Dead",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
}
