"""Client findings that are known upstream: a thread about it, by client and rule."""

from collections.abc import Mapping

KNOWN: Mapping[tuple[str, str], str] = {
    ("franz-go", "stops-when-fenced"): "twmb/franz-go#931",
    ("sarama", "stays-when-its-coordinator-moves"): "IBM/sarama#1231",
    ("kafkajs", "stays-when-its-coordinator-moves"): "tulios/kafkajs#1069",
}


def link(thread: str) -> str:
    """Return the address of a thread."""
    repository, _, number = thread.partition("#")
    return f"https://github.com/{repository}/issues/{number}"
