"""What the sentences of findings have in common: names of errors, counts and times."""

from kafka_protocol.errors import name_of
from reports.judgement.clients.client_rules.client_processes import Sent

SHOWN = 3  # how many requests of a kind a finding names


def error_of(one: Sent) -> str:
    """Return the name of the error that a request was answered."""
    return name_of(one.error or 0)


def often(count: int) -> str:
    """Return how often something happened, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def seconds(ms: float) -> str:
    """Return a time in seconds, in words."""
    return f"{ms / 1_000:.1f} s"
