"""Errors that are not the group's: of authorization, quotas and topics, and of a commit's metadata.

A broker answers the first three itself, and its coordinator never sees the request (`KafkaApis`).
Only a commit names topics: a broker answers the partitions that it does not know, or that the
client may not read, and hands on the others. The coordinator refuses metadata that are too long
partition by partition, and else treats the commit as any other (`offset.metadata.max.bytes`).
"""

from collections.abc import Iterator

from kafka_protocol.bodies import partitions_in
from kafka_protocol.errors import NO_ERROR, BrokerError
from reference_coordinator.classic.effects import CommitResponse, Response
from reference_coordinator.replay.evidence import ObservedRequest

OF_BROKER = frozenset(BrokerError) - {BrokerError.OFFSET_METADATA_TOO_LARGE}
"""The errors that a broker answers without its coordinator."""
OF_TOPICS = frozenset(
    (
        BrokerError.UNKNOWN_TOPIC_OR_PARTITION,
        BrokerError.TOPIC_AUTHORIZATION_FAILED,
        BrokerError.UNKNOWN_TOPIC_ID,
    )
)
"""Those of them about a topic."""
OF_AUTHORIZATION = frozenset(
    (BrokerError.GROUP_AUTHORIZATION_FAILED, BrokerError.TOPIC_AUTHORIZATION_FAILED)
)
"""Those of them that an ACL is the reason of."""


def of_the_broker(seen: ObservedRequest, response: Response) -> str | None:
    """Tell what a request is bound as that a broker answered without its coordinator, or None.

    `response` is the broker's own.
    """
    if response.error not in OF_BROKER:
        return None
    if seen.api == "OFFSET_COMMIT":
        alone = all(code in OF_BROKER for code, _ in _partitions(seen))
    else:
        alone = response.error not in OF_TOPICS
    if not alone:
        return None
    return "not_authorized" if response.error in OF_AUTHORIZATION else "broker_error"


def of_the_group(seen: ObservedRequest, max_metadata_size: int) -> CommitResponse | None:
    """Return a commit's response without the partitions with errors of their own.

    None if there are no such partitions.
    """
    if seen.api != "OFFSET_COMMIT":
        return None
    codes = list(_partitions(seen))
    left = [
        code
        for code, metadata in codes
        if code not in OF_BROKER
        and not (
            code == BrokerError.OFFSET_METADATA_TOO_LARGE
            and _java_length(metadata) > max_metadata_size
        )
    ]
    if len(left) == len(codes):
        return None
    error = next((code for code in left if code != NO_ERROR), NO_ERROR)
    return CommitResponse(error, every_partition_alike=len(set(left)) <= 1)


def has_of_broker(seen: ObservedRequest) -> bool:
    """Tell whether a broker answered a partition of a commit without its coordinator."""
    return any(code in OF_BROKER for code, _ in _partitions(seen))


def _java_length(text: str) -> int:
    """Return the length of a text as Java counts it, in units of UTF-16."""
    return len(text) + sum(character > "\uffff" for character in text)


def _partitions(seen: ObservedRequest) -> Iterator[tuple[int, str]]:
    """Yield the error of each partition of a commit, and the metadata that were sent with it."""
    sent = dict(partitions_in(seen.request["topics"]))
    for name, answered in partitions_in(seen.response_fields["topics"]):
        yield answered["errorCode"], sent.get(name, {}).get("committedMetadata") or ""
