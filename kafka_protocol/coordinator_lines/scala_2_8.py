"""What the Scala coordinator wrote before 3.0: Kafka 2.8, seen on live brokers.

3.0 changed the wording of lines about members, and names the leader; the rest is the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kafka_protocol.coordinator_lines.grammar import Grammar
from kafka_protocol.coordinator_lines.scala import GROUP, SCALA, coordinator_line
from kafka_protocol.coordinator_lines.template import Reason, Template

_REWORDED: tuple[Template, ...] = (
    coordinator_line(
        "assignment",
        "Assignment received from leader for group {group} for generation "
        "{generation:count}. The group has {members:count} members, {static_members:count} "
        "of which are static.",
    ),
    coordinator_line(
        "pending_joins",
        "Dynamic Member with specific member id {member} joins group {group} in "
        "{*state:word} state. Adding to the group now.",
    ),
    coordinator_line(
        "static_added",
        "Static Member with unknown member id joins group {group} in {*state:word} state. "
        "Created a new member id {member} for this member and add to the group.",
    ),
    coordinator_line(
        "static_replaced",
        "Static member Some({instance}) of group {group} with unknown member id rejoins, "
        "assigning new member id {*new_member}, while old member id {member} will be removed.",
    ),
    coordinator_line(
        "left",
        "Member[group.instance.id {*instance}, member.id {member}] in group {group} has left, "
        "removing it from the group",
    ),
    coordinator_line("pending_left", "Pending member {member} is leaving group {group}."),
    Template(
        "fenced",
        (GROUP,),
        "given member.id {member:any} is identified as a known static member {instance}, "
        "but not matching the expected member.id {*rest:any} during {*operation:dashed}, "
        "will respond with instance fenced error",
    ),
)

_UNTIL_2_8: tuple[Template, ...] = (
    coordinator_line(
        "static_mapped",
        "Adding new static member Some({instance}) to group {group} with member id {member}.",
    ),
)
"""Lines that 3.0 does not write any more."""

_REASONS = {
    "leader_rejoin": "leader {member} re-joining group during {*state:any}",
    "leave": "removing member {member:any} on LeaveGroup",
    "assignment_error": "error when storing group assignment during SyncGroup (member: {member})",
}


def reworded(
    grammar: Grammar, templates: Sequence[Template], reasons: Mapping[str, str]
) -> Grammar:
    """Replace templates and texts of reasons by name; add templates that the grammar lacks."""
    replaced = {template.name for template in templates}
    kept = (template for template in grammar.templates if template.name not in replaced)
    return replace(
        grammar,
        templates=(*kept, *templates),
        reasons=tuple(
            Reason(reason.name, reasons.get(reason.name, reason.text)) for reason in grammar.reasons
        ),
    )


SCALA_2 = reworded(SCALA, (*_REWORDED, *_UNTIL_2_8), _REASONS)
"""The Scala coordinator of Kafka 2.8."""
