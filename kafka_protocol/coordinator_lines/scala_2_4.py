"""What the Scala coordinator wrote in 2.4 to 2.7.

Seen on live brokers of 2.4.1 and read in Kafka's source, 2.4.1 to 2.7.2. There are no leader epochs
yet, counts of members neither; a broker says that it begins to load or unload when it schedules it.
"""

from dataclasses import replace

from kafka_protocol.coordinator_lines.grammar import Template
from kafka_protocol.coordinator_lines.scala import (
    GROUP,
    LOADED,
    OFFSETS,
    PARTITION,
    coordinator_line,
    manager_line,
)
from kafka_protocol.coordinator_lines.scala_2_8 import SCALA_2, reworded

_UNTIL_2_7: tuple[Template, ...] = (
    coordinator_line(
        "stabilized",
        rf"Stabilized group (.+) generation (\d+) {PARTITION}",
        "group",
        "generation",
        "partition",
    ),
    coordinator_line(
        "assignment",
        r"Assignment received from leader for group (.+) for generation (\d+)",
        "group",
        "generation",
    ),
    coordinator_line(
        "absent_dynamic_removed",
        r"Group (.+) remove dynamic members who haven't joined: .*",
        "group",
    ),
    Template(
        "member_loaded",
        (LOADED,),
        # the whole member stands where its instance id was meant
        r"^Static member .*\.groupInstanceId of group (.+) loaded with member id (.+) "
        r"at generation (-?\d+)\.$",
        ("group", "member", "generation"),
    ),
    manager_line(
        "loading",
        rf"Scheduling loading of offsets and group metadata from {OFFSETS}",
        "partition",
    ),
    manager_line(
        "loaded",
        rf"Finished loading offsets and group metadata from {OFFSETS} in \d+ milliseconds[.,].*",
        "partition",
    ),
    manager_line(
        "unload_started",
        rf"Scheduling unloading of offsets and group metadata from {OFFSETS}",
        "partition",
    ),
    manager_line(
        "unloaded",
        rf"Finished unloading {OFFSETS}\. Removed \d+ cached offsets and \d+ cached groups\.",
        "partition",
    ),
)

_SAID_OTHERWISE = ("load_scheduled", "unload_scheduled")
"""Templates of whose lines others are made here."""

_UNTIL_2_6_0: tuple[Template, ...] = (
    coordinator_line(
        "static_no_rebalance", r"Static member joins during \w+ stage will not trigger rebalance\."
    ),
)

_UNTIL_2_4: tuple[Template, ...] = (
    coordinator_line(
        "dynamic_given_id",
        r"Dynamic member with unknown member id rejoins group (.+) in \w+ state\. "
        r"Created a new member id (.+) and request the member to rejoin with this id\.",
        "group",
        "member",
    ),
    coordinator_line(
        "member_added",
        r"Dynamic member with unknown member id rejoins group (.+) in \w+ state\. "
        r"Created a new member id (.+) for this member and add to the group\.",
        "group",
        "member",
    ),
    coordinator_line(
        "static_replaced",
        r"Static member Some\((.+)\) with unknown member id rejoins, assigning new member id .+, "
        r"while old member (.+) will be removed\.",
        "instance",
        "member",
    ),
    Template(
        "fenced",
        (GROUP,),
        r"^given member\.id (.*) is identified as a known static member (.+),but not matching the "
        r"expected member\.id .*$",
        ("member", "instance"),
    ),
    coordinator_line(
        "heartbeat_of_nobody",
        r"Member id (.+) was not found in (.+) during heartbeat expiration\.",
        "member",
        "group",
    ),
)

_BY_2_7 = reworded(SCALA_2, _UNTIL_2_7, {})

SCALA_2_7 = replace(
    _BY_2_7,
    templates=tuple(t for t in _BY_2_7.templates if t.name not in _SAID_OTHERWISE),
    tells_bytes=False,
)
"""The Scala coordinator of Kafka 2.6.1 to 2.7."""

SCALA_2_5 = replace(
    reworded(SCALA_2_7, _UNTIL_2_6_0, {"member_metadata": r"^Updating metadata for member (.+)$"}),
    reasons_instead={"leader_rejoin": "member_metadata"},
)
"""The Scala coordinator of Kafka 2.5.0 to 2.6.0."""

SCALA_2_4 = replace(
    reworded(
        SCALA_2_5, _UNTIL_2_4, {"new_member": r"^Adding new member (.+) with group instanceid "}
    ),
    lines_instead={
        "static_added": "member_added",
        "dynamic_added": "member_added",
        "static_replaced": None,
        "pending_joins": None,
    },
)
"""The Scala coordinator of Kafka 2.4, which took whoever is new for dynamic."""
