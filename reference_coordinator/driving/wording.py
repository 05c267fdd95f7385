"""How a coordinator words its lines, from the templates that parse them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.coordinator_lines.template import CLIENT_REASON
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.replay.expected_lines import DueLine

NO_MEMBER = "null"
"""The member in the reason of a rebalance that a mutant starts though no member left."""
NOT_PROVIDED = "not provided"
"""What stands for the reason of a client that gives none (KIP-800)."""
WITHOUT_CLIENT_REASON = {
    "java": (Reason.LEAVE, Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
    "scala": (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
}
THREADS = {
    "java": "group-coordinator-event-processor",
    "scala": "data-plane-kafka-request-handler",
}
DEBUG_LINES = ("join_incomplete", "member_loaded", "unsynced_removed")
"""Templates of lines at level DEBUG."""
SERVICE_LINES = {
    **dict.fromkeys(("starting", "started", "shutting_down", "shut_down"), "Service"),
    **dict.fromkeys(("events_closing", "events_closed"), "Processor"),
}
"""Templates of lines about no group that others of the loggers write than the runtime."""
SHUTDOWN = {"shutting_down": 0.0, "runtime_closing": 0.1, "events_closing": 1.0,
            "events_closed": 2.1, "runtime_closed": 3.0, "shut_down": 3.6}  # fmt: skip
"""The lines of a broker that shuts down, and when it writes them, in ms."""
LOADED = "0ms was spent in the scheduler. Loaded 0 records which total to 0 bytes."
"""How the line ends of a load, whatever the records: nothing is read of it."""
OTHER_LOGGER = {"fenced": -2}
"""Templates whose lines another of their loggers writes than the first, by its place."""


@dataclass(frozen=True)
class Wording:
    """Prints the lines of one coordinator."""

    grammar: Grammar

    @cached_property
    def printed_lines(self) -> Collection[str]:
        """The templates that the coordinator writes of what it does."""
        never = {name for name, other in self.grammar.lines_instead.items() if other is None}
        return {template.name for template in self.grammar.templates} - never

    def line(self, broker: str, name: str, values: dict[str, Any], thread: int = 0) -> str:
        """Print a line of a template as it stands after its time, by one of the threads."""
        filled = {"client_reason": NOT_PROVIDED} | values
        filled |= {"ending": f"{CLIENT_REASON}{filled['client_reason']}"}
        loggers = self.grammar.template(name).loggers
        logger = loggers[OTHER_LOGGER.get(name, 0) if len(loggers) > 1 else 0]
        level = "DEBUG" if name in DEBUG_LINES else "INFO"
        body = self.grammar.printed(name, broker, filled)
        return f"{THREADS[self.grammar.coordinator]}-{thread} {level} {body} ({logger})"

    def broker_line(
        self, broker: str, name: str, thread: str, values: Mapping[str, object] | None = None
    ) -> str:
        """Print a line of the Java coordinator about no group, by a thread of that name."""
        template = self.grammar.template(name)
        kind = SERVICE_LINES.get(name, "CoordinatorRuntime")
        logger = next(one for one in template.loggers if one.endswith(kind))
        body = f"[GroupCoordinator id={broker}] {template.printed(values or {})}"
        return f"{thread} INFO {body} ({logger})"

    def about(self, due: DueLine) -> dict[str, str]:
        """Return the values of the fields of a line."""
        named = "instance" if due.line == "static_replaced" else "member"
        values = {named: due.subject, **dict(due.says)}
        if "removed" in values and self.grammar.coordinator == "scala":
            values["removed"] = f"Set({values['removed']})"
        values["client_reason"] = values.get("client_reason") or NOT_PROVIDED
        return values

    def reason(self, begun: DueLine) -> str:
        """Print why a group rebalances."""
        says = dict(begun.says)
        reason, batch = Reason(says["reason"]), self.grammar.coordinator == "java"
        member = says["member"] or NO_MEMBER
        if batch and "members_sent" in says:
            member = says["members_sent"]
        instance = says.get("instance") or None
        values = {
            "member": member,
            "leader": member,  # of a write that failed
            "state": says["state"],
            "instance": self.option(instance) if reason is Reason.NEW_MEMBER else instance,
            "rest": Error.NOT_COORDINATOR.name,  # why a write failed, which no rule is about
        }
        text = self.grammar.reason(reason).printed(values)
        if reason in WITHOUT_CLIENT_REASON[self.grammar.coordinator]:
            return text
        return f"{text}{CLIENT_REASON}{says.get('client_reason') or NOT_PROVIDED}"

    def option(self, instance: str | None) -> str:
        """Print an instance id that there may be none of."""
        if self.grammar.coordinator == "java":
            return instance or "null"
        return "None" if instance is None else f"Some({instance})"
