"""Why a record could not be appended to the offsets topic, as a coordinator's line names it.

The Java coordinator prints the error's message (`CoordinatorRuntime`), from 4.4 on words of its
own for the errors that it expects. The Scala one prints the name of its exception
(`GroupMetadataManager.storeGroup`, `storeOffsets`). Both map the error before they answer, Java in
`CoordinatorOperationExceptionHelper`; `Profile.answers_to` has the result.
"""

from enum import StrEnum


class AppendError(StrEnum):
    """The errors of an append that are answered alike; `UNNAMED` is any other."""

    NOT_LEADER = "write_not_leader"
    NOT_REPLICATED = "write_not_replicated"
    APPENDED = "write_appended"
    """The record is in the log, and in that of each replica in sync: these are too few."""
    TIMED_OUT = "write_timed_out"
    TOO_LARGE = "write_too_large"
    UNNAMED = "write_failed"


_WORDS = {
    "not the current leader": AppendError.NOT_LEADER,
    "no longer the leader": AppendError.NOT_LEADER,  # 4.4
    "NotLeader": AppendError.NOT_LEADER,
    "Disk error": AppendError.NOT_LEADER,
    "KafkaStorageException": AppendError.NOT_LEADER,
    "written to the log, but to fewer in-sync replicas": AppendError.APPENDED,
    "NotEnoughReplicasAfterAppend": AppendError.APPENDED,
    "in-sync replicas than required": AppendError.NOT_REPLICATED,
    "NotEnoughReplicas": AppendError.NOT_REPLICATED,
    "does not host this topic-partition": AppendError.NOT_REPLICATED,
    "UnknownTopicOrPartition": AppendError.NOT_REPLICATED,
    "timed out": AppendError.TIMED_OUT,
    "TimeoutException": AppendError.TIMED_OUT,
    "larger than": AppendError.TOO_LARGE,
    "TooLargeException": AppendError.TOO_LARGE,
    "fetch size is invalid": AppendError.TOO_LARGE,
    "InvalidFetchSize": AppendError.TOO_LARGE,
}
"""Messages of `org.apache.kafka.common.protocol.Errors`, and names of its exceptions.

Of two that are in a line the first counts."""


def append_error(message: str) -> AppendError:
    """Return the error that a coordinator's line about a failed write names at its end."""
    named = message.rpartition("failed")[2]
    return next((error for words, error in _WORDS.items() if words in named), AppendError.UNNAMED)
