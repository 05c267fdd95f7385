"""What a fault of the verdict is: whom it concerns, and whether there is anything to heal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Fault = Mapping[str, Any]
"""A fault as it stands in `verdict.json`."""

WORDS: Mapping[str, tuple[str, str]] = {
    "member.restart": ("restart", "closed cleanly, then started again"),
    "member.kill": ("kill", "ended as by a crash, without LeaveGroup, then started afresh"),
    "member.duplicate-instance": (
        "duplicate",
        "a second process came with its instance id, and was ended before it was started afresh",
    ),
    "group.remove-members": ("removal", "one LeaveGroup request that names members by instance id"),
    "topic.add-partitions": ("growth", "a topic was given more partitions"),
    "broker.kill": ("broker kill", "ended with SIGKILL, then started again"),
    "broker.stop": ("broker stop", "shut down cleanly, then started again"),
    "broker.restart": ("broker restart", "shut down cleanly and started again at once"),
    "broker.pause": ("broker pause", "frozen: its sockets stayed open and nothing answered"),
}
"""What faults are counted as, and what they do."""


def hits_broker(fault: Fault) -> bool:
    """Tell a fault of a broker from one of a member or a group."""
    return bool(fault["name"].startswith("broker."))


def hits_group(fault: Fault) -> bool:
    """Tell a fault of a group as a whole, or of its topics: it names no member."""
    return bool(fault["name"].startswith(("group.", "topic.")))


def one_shot(fault: Fault) -> bool:
    """Tell a fault that is one request, with nothing to heal, from one that lasts."""
    return bool(fault["name"] in ("group.remove-members", "topic.add-partitions"))


def concerning(group: str, faults: Iterable[Fault]) -> list[Fault]:
    """List what hit a group, or a broker and with it maybe every group."""
    return [fault for fault in faults if fault["group"] in (group, None) or hits_broker(fault)]


def meaning(fault: Fault) -> str:
    """Say what a fault does; nothing of one that is not known here."""
    return WORDS.get(fault["name"], ("", ""))[1]


def counted(faults: Iterable[Fault]) -> Counter[str]:
    """Count those that were injected, by what they are counted as."""
    return Counter(
        WORDS.get(fault["name"], (fault["name"],))[0]
        for fault in faults
        if fault["injected_at_ms"] is not None
    )
