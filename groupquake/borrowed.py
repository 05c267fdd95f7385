"""Groups and topics of a run on a cluster of the user's: they are new, and are deleted at the end.

The journal has their names before they are created, so that `groupquake heal` can delete them, too.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, InvalidGroupIdError, KafkaError

from chaos.clusters.external import Target
from chaos.errors import ChaosError
from chaos.journal import Journal, read
from chaos.removal import GroupError, remove_everybody
from groupquake.connecting import require_answer
from groupquake.exits import NotAuthorizedError, NotHealedError
from groupquake.kafka_admin import kafka_python
from kafka_protocol.errors import Error
from scenarios import Experiment
from scenarios.client_properties import PropertiesError, read_checked

TAKEN, GIVEN_BACK = "borrowed", "given_back"
"""Events of the journal."""
_REFUSED = re.compile(
    "(group|topic|cluster)(?:[_ ]?authorization[_ ]?failed)"
    "|not authorized to access (?:this )?(group|topic)",
    re.IGNORECASE,
)
"""What an ACL refused, in the words of Kafka, librdkafka, the Python libraries, and sarama."""
WITHIN_S = 30.0
_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Borrowed:
    """The names that a run uses on a cluster."""

    bootstrap: str
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    prefix: str = ""
    """What all the names begin with: the mark of the run."""

    @classmethod
    def of(cls, experiment: Experiment, target: Target) -> "Borrowed":
        """Return the names of an experiment that carry its prefix already."""
        return cls(
            target.bootstrap,
            tuple(topic.name for topic in experiment.workload.topics),
            tuple(experiment.group_names),
            target.client_properties,
            experiment.cluster.prefix or "",
        )

    @classmethod
    def noted(cls, entry: Mapping[str, Any]) -> "Borrowed":
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
                properties = read_checked(Path(file) if file else None)
                return cls(bootstrap, tuple(topics), tuple(groups), properties, prefix)
        raise ChaosError(f"{dict(entry)} does not tell what was borrowed; the journal was altered")

    def take(self, journal: Journal, file: Path | None, leaders: Sequence[int]) -> None:
        """Note the names, of which the cluster has none; `file` has the client properties.

        `leaders` are those of the partitions of `__consumer_offsets`, as long as nothing of this
        run has made them load anything.

        Raises ChaosError if it has one: that is not the run's.
        """
        with self._client("the names of groups and topics could not be checked") as client:
            there = [f"topic {name}" for name in client.list_topics() if name in self.topics]
            listed = {group["group_id"] for group in client.list_groups()}
        there += [f"group {name}" for name in self.groups if name in listed]
        if there:
            raise ChaosError(
                f"{', '.join(there)}: on the cluster already; choose another cluster.prefix"
            )
        journal.write(
            TAKEN,
            bootstrap=self.bootstrap,
            client_properties=None if file is None else str(file),
            topics=list(self.topics),
            groups=list(self.groups),
            prefix=self.prefix,
            offsets_leaders=list(leaders),
        )

    def give_back(self) -> None:
        """Delete the groups and topics, as far as they are there; members may still be in.

        Raises ChaosError if that takes longer than half a minute.
        """
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                require_answer(self.bootstrap, self.properties)
                for group in self.groups:
                    self._empty(group)
                with self._client("groups and topics could not be deleted", WITHIN_S) as client:
                    left = [
                        *_delete_groups(client, self.groups),
                        *_delete_topics(client, self.topics),
                    ]
            except ChaosError as error:
                left = [str(error)]
            if not left and not (left := self._there_again()):
                return
            if time.monotonic() > deadline:
                raise ChaosError(f"not deleted at {self.bootstrap}: {'; '.join(left)}")
            time.sleep(_AGAIN_S)

    def _there_again(self) -> list[str]:
        """Return groups that requests made anew which a paused broker still had before it."""
        time.sleep(_AGAIN_S)
        try:
            with self._client("groups could not be listed") as client:
                listed = {group["group_id"] for group in client.list_groups()}
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


def _delete_groups(client: KafkaAdminClient, groups: Sequence[str]) -> list[str]:
    """Delete groups; return what is left, and why."""
    if not groups:
        return []
    answers: Any = client.delete_groups(list(groups))
    pairs = answers.items() if isinstance(answers, dict) else answers
    return [
        f"group {name} ({_name(error)})"
        for name, error in pairs
        if _is_error(error) and not _one_of(error, GroupIdNotFoundError, InvalidGroupIdError)
    ]


def _delete_topics(client: KafkaAdminClient, topics: Sequence[str]) -> list[str]:
    left = set(client.list_topics()) & set(topics)
    if left:
        client.delete_topics(sorted(left), raise_errors=False)
    return [f"topic {name}" for name in sorted(set(client.list_topics()) & left)]


def _is_error(error: Any) -> bool:
    kind = error if isinstance(error, type) else type(error)
    return issubclass(kind, KafkaError) and getattr(kind, "errno", 0) != 0


def _one_of(error: Any, *kinds: type[KafkaError]) -> bool:
    return issubclass(error if isinstance(error, type) else type(error), kinds)


def _name(error: Any) -> str:
    return str(getattr(error, "message", error))


def require_allowed(history: Path, prefix: str) -> None:
    """Raise NotAuthorizedError if the brokers' ACLs refused something to a client.

    The names of the run begin with `prefix`.
    """
    if not history.is_file():
        return
    lines = history.read_text(errors="replace").splitlines()
    refused = [(found, json.loads(line)) for line in lines if (found := _REFUSED.search(line))]
    if not refused:
        return
    found, event = refused[0]
    what = (found[1] or found[2]).lower()
    who, right = ("", "WRITE") if event.get("kind") == "producer" else ("member ", "READ")
    times = sum(1 + one.get("left_out", 0) for _, one in refused)
    raise NotAuthorizedError(
        f"{who}{event['member']}: {what.upper()}_AUTHORIZATION_FAILED: {event['error']} (the first"
        f" of {times} refusals); allow {right} and DESCRIBE of each {what} with the prefix"
        f" '{prefix}' to the clients' user"
    )


def not_given_back(entries: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the entries of a journal that say what is still to be deleted."""
    if any(entry["event"] == GIVEN_BACK for entry in entries):
        return ()
    return tuple(entry for entry in entries if entry["event"] == TAKEN)


def give_back_from(journal: Journal) -> tuple[str, ...]:
    """Delete what a journal says was borrowed and not given back; return the names.

    Raises NotHealedError if it cannot be done.
    """
    done: list[str] = []
    for entry in not_given_back(read(journal.path)):
        try:
            borrowed = Borrowed.noted(entry)
            borrowed.give_back()
        except (ChaosError, PropertiesError) as error:
            raise NotHealedError(f"NOT HEALED: {error}") from error
        journal.write(GIVEN_BACK)
        done += [*borrowed.topics, *borrowed.groups]
    return tuple(done)
