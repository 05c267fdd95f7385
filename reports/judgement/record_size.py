"""The size of a group's record beside the largest that a broker takes, as verdict and page show it.

A group whose record is too large cannot store an assignment: its members get an error.
"""

from kafka_protocol.group_record import DEFAULT_LIMIT_BYTES, LIMIT_PROPERTY
from scenarios import Experiment

LARGE = 0.1
"""The part of the largest batch from which on the headline shows the size of a group's record."""


def limit_bytes(experiment: Experiment) -> int | None:
    """Return the largest batch that a run's brokers take; None for a cluster of a user's."""
    if experiment.cluster.kind == "external":
        return None
    return int(experiment.cluster.config.get(LIMIT_PROPERTY, DEFAULT_LIMIT_BYTES))


def if_large(record_bytes: int | None, most_bytes: int | None) -> str:
    """Write a large record's size; of a small one, or where that is not known, write nothing."""
    if record_bytes is None or most_bytes is None or record_bytes < most_bytes * LARGE:
        return ""
    share = record_bytes / most_bytes
    return f"its record has {in_kib(record_bytes)} of at most {in_kib(most_bytes)} ({share:.0%})"


def in_kib(size: int | None) -> str:
    """Write a number of bytes as people read it: `1,024 KiB`."""
    return "not known" if size is None else f"{size / 1024:,.1f} KiB"
