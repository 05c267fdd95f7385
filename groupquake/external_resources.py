"""Groups and topics of a run on a cluster of the user's: they are new, and are deleted at the end.

The journal has their names before they are created, so that `groupquake heal` can delete them, too.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, InvalidGroupIdError, KafkaError

from chaos.cluster_view import ClusterView
from chaos.errors import ChaosError
from chaos.external.cluster import Target
from chaos.journal import Entry, Journal, read
from chaos.kafka_client import kafka_python
from chaos.removal import GroupError, remove_everybody
from groupquake.access import require_answer
from groupquake.exits import NotHealedError
from groupquake.timing import DELETION_POLL_S, DELETION_S
from kafka_protocol.errors import Error
from scenarios import Experiment
from scenarios.client_properties import PropertiesError, read_checked

CREATED, DELETED = "borrowed", "given_back"
"""Events of the journal."""


def create(experiment: Experiment, target: Target, view: ClusterView, journal: Journal) -> None:
    """Create the topics of an experiment, whose names and groups' names begin with its prefix.

    The journal gets them, and the leaders of the partitions of `__consumer_offsets`, as long as
    nothing of this run has made them load anything. Raises ChaosError if the cluster has a topic or
    group of such a name: that is not the run's.
    """
    topics = [topic.name for topic in experiment.workload.topics]
    groups = list(experiment.group_names)
    resources = ExternalResources(target.bootstrap, topics, groups, target.client_properties)
    if there := resources.found():
        raise ChaosError(
            f"{', '.join(there)}: on the cluster already; choose another cluster.prefix"
        )
    file = target.client_properties_file
    journal.write(
        CREATED,
        bootstrap=target.bootstrap,
        client_properties=None if file is None else str(file),
        topics=topics,
        groups=groups,
        prefix=experiment.cluster.prefix or "",
        offsets_leaders=list(view.offsets_leaders()),
    )
    view.create_topics(experiment)


def not_deleted(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a journal that say what is still to be deleted."""
    if any(entry["event"] == DELETED for entry in entries):
        return ()
    return tuple(entry for entry in entries if entry["event"] == CREATED)


def delete(journal: Journal) -> tuple[str, ...]:
    """Delete what a journal says was created and not deleted; return the names.

    Raises NotHealedError if it cannot be done.
    """
    done: list[str] = []
    for entry in not_deleted(read(journal.path)):
        try:
            resources = ExternalResources.noted(entry)
            resources.delete()
        except (ChaosError, PropertiesError) as error:
            raise NotHealedError(f"NOT HEALED: {error}") from error
        journal.write(DELETED)
        done += [*resources.topics, *resources.groups]
    return tuple(done)


@dataclass(frozen=True, slots=True)
class ExternalResources:
    """The topics and groups of a run on a cluster."""

    bootstrap: str
    topics: Sequence[str]
    groups: Sequence[str]
    properties: Mapping[str, str]

    @classmethod
    def noted(cls, entry: Entry) -> "ExternalResources":
        """Return what an entry of a journal has.

        Raises ChaosError if it was altered or a name lacks the prefix, and PropertiesError if the
        file that it names cannot be read any more.
        """
        match entry:
            case {
                "bootstrap": str(bootstrap),
                "topics": [*topics],
                "groups": [*groups],
                "client_properties": str() | None as file,
                "prefix": str(prefix),
            } if (
                bootstrap
                and prefix
                and all(
                    isinstance(name, str) and name.startswith(prefix) for name in (*topics, *groups)
                )
            ):
                return cls(bootstrap, topics, groups, read_checked(Path(file) if file else None))
        raise ChaosError(f"{dict(entry)} does not tell what was created; the journal was altered")

    def found(self) -> list[str]:
        """Return which of them the cluster has, in words. Raises ChaosError."""
        with self._client("the names of groups and topics could not be checked") as client:
            topics, listed = client.list_topics(), _listed_groups(client)
        found = [f"topic {name}" for name in topics if name in self.topics]
        return found + [f"group {name}" for name in self.groups if name in listed]

    def delete(self) -> None:
        """Delete the groups and topics, as far as they are there; members may still be in.

        Raises ChaosError if that takes longer than half a minute.
        """
        deadline = time.monotonic() + DELETION_S
        while left := self._left():
            if time.monotonic() > deadline:
                raise ChaosError(f"not deleted at {self.bootstrap}: {'; '.join(left)}")
            time.sleep(DELETION_POLL_S)

    def _left(self) -> list[str]:
        """Try to delete all; return what is left, and why."""
        try:
            require_answer(self.bootstrap, self.properties)
            for group in self.groups:
                self._empty(group)
            with self._client("groups and topics could not be deleted", DELETION_S) as client:
                if left := _delete(client, self.groups, self.topics):
                    return left
            # requests that a paused broker still had before it make groups anew
            time.sleep(DELETION_POLL_S)
            with self._client("groups could not be listed") as client:
                listed = _listed_groups(client)
        except ChaosError as error:
            return [str(error)]
        return [f"group {name}" for name in self.groups if name in listed]

    def _empty(self, group: str) -> None:
        """Remove members: static ones stay when they are closed, others when they are killed."""
        try:
            remove_everybody(self.bootstrap, group, self.properties)
        except GroupError as error:
            if error.code != Error.GROUP_ID_NOT_FOUND:
                raise

    def _client(self, matter: str, timeout_s: float = 10.0) -> Any:
        return kafka_python(self.bootstrap, self.properties, matter, timeout_s)


def _listed_groups(client: KafkaAdminClient) -> set[str]:
    return {group["group_id"] for group in client.list_groups()}


def _delete(client: KafkaAdminClient, groups: Sequence[str], topics: Sequence[str]) -> list[str]:
    """Delete groups and topics; return what is left, and why."""
    left: list[str] = []
    if groups:
        answers: Any = client.delete_groups(list(groups))
        for name, error in answers.items() if isinstance(answers, dict) else answers:
            kind = error if isinstance(error, type) else type(error)
            gone = issubclass(kind, GroupIdNotFoundError | InvalidGroupIdError)
            if issubclass(kind, KafkaError) and getattr(kind, "errno", 0) != 0 and not gone:
                left.append(f"group {name} ({getattr(error, 'message', error)})")
    if there := set(client.list_topics()) & set(topics):
        client.delete_topics(sorted(there), raise_errors=False)
        left += [f"topic {name}" for name in sorted(there & set(client.list_topics()))]
    return left
