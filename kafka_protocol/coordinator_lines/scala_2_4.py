"""What the Scala coordinator wrote in 2.4 to 2.7.

Seen on live brokers of 2.4.1 and read in Kafka's source, 2.4.1 to 2.7.2. These releases log neither
leader epochs nor counts of members; a broker logs that it schedules a load or unload, and not when
it starts.
"""

from dataclasses import replace

from kafka_protocol.coordinator_lines.scala import (
    GROUP,
    LOADED,
    coordinator_line,
    manager_line,
)
from kafka_protocol.coordinator_lines.scala_2_8 import SCALA_2, reworded
from kafka_protocol.coordinator_lines.template import Template

_UNTIL_2_7: tuple[Template, ...] = (
    coordinator_line(
        "stabilized",
        "Stabilized group {group} generation {generation:count} "
        "(__consumer_offsets-{partition:count})",
    ),
    coordinator_line(
        "assignment",
        "Assignment received from leader for group {group} for generation {generation:count}",
    ),
    coordinator_line(
        "absent_dynamic_removed",
        "Group {group} remove dynamic members who haven't joined: {*removed:any}",
    ),
    # the whole member stands where its instance id was meant
    Template(
        "member_loaded",
        (LOADED,),
        "Static member {*rest:any}.groupInstanceId of group {group} loaded with member id "
        "{member} at generation {generation:int}.",
    ),
    manager_line(
        "loading",
        "Scheduling loading of offsets and group metadata from "
        "__consumer_offsets-{partition:count}",
    ),
    manager_line(
        "loaded",
        "Finished loading offsets and group metadata from "
        "__consumer_offsets-{partition:count} in {*took_ms:count} "
        "milliseconds{*end:.|,}{*rest:any}",
    ),
    manager_line(
        "unload_started",
        "Scheduling unloading of offsets and group metadata from "
        "__consumer_offsets-{partition:count}",
    ),
    manager_line(
        "unloaded",
        "Finished unloading __consumer_offsets-{partition:count}. Removed {*count:count} "
        "cached offsets and {*groups:count} cached groups.",
    ),
)

_REPLACED = ("load_scheduled", "unload_scheduled")
"""The lines of these templates are those of `loading` and `unload_started` here."""

_NOT_ALWAYS = ("member_loaded", "absent_dynamic_removed", "nobody_rejoined")
"""Lines that not all of these releases write where later ones do, or that they write elsewhere."""

_UNTIL_2_6_0: tuple[Template, ...] = (
    coordinator_line(
        "static_no_rebalance",
        "Static member joins during {*state:word} stage will not trigger rebalance.",
    ),
)

_UNTIL_2_4: tuple[Template, ...] = (
    coordinator_line(
        "dynamic_given_id",
        "Dynamic member with unknown member id rejoins group {group} in {*state:word} "
        "state. Created a new member id {member} and request the member to rejoin with this"
        " id.",
    ),
    coordinator_line(
        "member_added",
        "Dynamic member with unknown member id rejoins group {group} in {*state:word} "
        "state. Created a new member id {member} for this member and add to the group.",
    ),
    coordinator_line(
        "static_replaced",
        "Static member Some({instance}) with unknown member id rejoins, assigning new "
        "member id {*new_member}, while old member {member} will be removed.",
    ),
    Template(
        "fenced",
        (GROUP,),
        "given member.id {member:any} is identified as a known static member {instance},but"
        " not matching the expected member.id {*rest:any}",
    ),
    coordinator_line(
        "heartbeat_of_nobody",
        "Member id {member} was not found in {group} during heartbeat expiration.",
    ),
)

_BY_2_7 = reworded(SCALA_2, _UNTIL_2_7, {})

SCALA_2_7 = replace(
    _BY_2_7,
    templates=tuple(t for t in _BY_2_7.templates if t.name not in _REPLACED),
    lines_instead=dict.fromkeys(_NOT_ALWAYS),
    tells_bytes=False,
)
"""The Scala coordinator of Kafka 2.6.1 to 2.7."""

SCALA_2_5 = replace(
    reworded(SCALA_2_7, _UNTIL_2_6_0, {"member_metadata": "Updating metadata for member {member}"}),
    reasons_instead={"leader_rejoin": "member_metadata"},
)
"""The Scala coordinator of Kafka 2.5.0 to 2.6.0."""

SCALA_2_4 = replace(
    reworded(
        SCALA_2_5,
        _UNTIL_2_4,
        {"new_member": "Adding new member {member} with group instanceid {*instance:any}"},
    ),
    lines_instead={
        "static_added": "member_added",
        "dynamic_added": "member_added",
        "static_replaced": None,
        "pending_joins": None,
        **dict.fromkeys(_NOT_ALWAYS),
    },
)
"""The Scala coordinator of Kafka 2.4. It logs every new member as a dynamic one."""
