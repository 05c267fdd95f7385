"""What the Scala coordinator wrote before 3.0: Kafka 2.8, seen on live brokers.

3.0 worded anew what happens to members, and names the leader; the rest has stayed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kafka_protocol.coordinator_lines.grammar import Grammar, Template
from kafka_protocol.coordinator_lines.scala import GROUP, SCALA, coordinator_line

_REWORDED: tuple[Template, ...] = (
    coordinator_line(
        "assignment",
        r"Assignment received from leader for group (.+) for generation (\d+)\. "
        r"The group has (\d+) members, (\d+) of which are static\.",
        "group",
        "generation",
        "members",
        "static_members",
    ),
    coordinator_line(
        "pending_joins",
        r"Dynamic Member with specific member id (.+) joins group (.+) in \w+ state\. "
        r"Adding to the group now\.",
        "member",
        "group",
    ),
    coordinator_line(
        "static_added",
        r"Static Member with unknown member id joins group (.+) in \w+ state\. "
        r"Created a new member id (.+) for this member and add to the group\.",
        "group",
        "member",
    ),
    coordinator_line(
        "static_replaced",
        r"Static member Some\((.+)\) of group (.+) with unknown member id rejoins, assigning new "
        r"member id .+, while old member id (.+) will be removed\.",
        "instance",
        "group",
        "member",
    ),
    coordinator_line(
        "left",
        r"Member\[group\.instance\.id .+, member\.id (.+)\] in group (.+) has left, "
        r"removing it from the group",
        "member",
        "group",
    ),
    coordinator_line(
        "pending_left",
        r"Pending member (.+) is leaving group (.+)\.",
        "member",
        "group",
    ),
    Template(
        "fenced",
        (GROUP,),
        r"^given member\.id (.*) is identified as a known static member (.+), but not matching the "
        r"expected member\.id .* during [\w-]+, will respond with instance fenced error$",
        ("member", "instance"),
    ),
)

_GONE: tuple[Template, ...] = (
    coordinator_line(
        "static_mapped",
        r"Adding new static member Some\((.+)\) to group (.+) with member id (.+)\.",
        "instance",
        "group",
        "member",
    ),
)
"""Lines that nobody writes any more."""

_REASONS = {
    "leader_rejoin": r"^leader (.+) re-joining group during ",
    "leave": r"^removing member (.*) on LeaveGroup",
    "assignment_error": r"^error when storing group assignment during SyncGroup \(member: (.+)\)",
}


def reworded(
    grammar: Grammar, templates: Sequence[Template], reasons: Mapping[str, str]
) -> Grammar:
    """Put other words for lines and reasons into a grammar; templates that it lacks are added."""
    anew = {template.name for template in templates}
    kept = (template for template in grammar.templates if template.name not in anew)
    return replace(
        grammar,
        templates=(*kept, *templates),
        reasons=tuple((name, reasons.get(name, regex)) for name, regex in grammar.reasons),
    )


SCALA_2 = reworded(SCALA, (*_REWORDED, *_GONE), _REASONS)
"""The Scala coordinator of Kafka 2.8."""
