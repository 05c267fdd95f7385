"""What a member's metadata asks for, where a promise hangs on it."""

from base64 import b64decode

from kafka_protocol.bodies import LENGTH
from reference_coordinator.assignors.consumer_protocol import ConsumerProtocolError, Subscription


def ask_for_the_same(one: str, other: str) -> bool:
    """Tell whether metadata (base64) of consumers name the same topics; else they must be equal.

    Nothing is told by metadata of which the length alone is known.

    A consumer that is back also says what it owns and since when (KIP-429, KAFKA-13715): nothing,
    and no generation.
    """
    if one == other or (LENGTH.fullmatch(one) and LENGTH.fullmatch(other)):
        return True
    try:
        return _topics(one) == _topics(other)
    except (ConsumerProtocolError, ValueError):
        return False


def _topics(metadata: str) -> frozenset[str]:
    return frozenset(Subscription.decode(b64decode(metadata, validate=True)).topics)
