"""Which metadata asks for the same."""

from base64 import b64encode

import pytest

from kafka_protocol.consumer_protocol import Subscription
from reference_coordinator.classic.rejoin_reasons import same_subscription


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Subscription(("a", "b"), generation=7), Subscription(("b", "a")), True),
        (Subscription(("a",)), Subscription(("a", "b")), False),
    ],
)
def test_a_consumer_that_is_back_asks_for_its_topics(
    one: Subscription, other: Subscription, same: bool
) -> None:
    """Seen on 4.3.0: a Java consumer that restarts no longer tells a generation."""
    blobs = [b64encode(subscription.encode()).decode() for subscription in (one, other)]
    assert same_subscription(*blobs) is same
    assert not same_subscription(blobs[0], "(39 bytes)")


def test_metadata_lengths_decide_nothing() -> None:
    assert same_subscription("(39 bytes)", "(47 bytes)")
