"""The bugs that are planted: the program, where consumers have it, and what must name it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Planted:
    """A bug: the `program` of a member of a group, beside two true ones.

    A public `issue` shows it in a client. `rule` must name it, in a sentence with these `words`;
    `also` are rules that it breaks by the way. The `fault` hits the member itself, or a true one.
    """

    program: str
    issue: str = ""
    rule: str = ""
    words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    static: bool = False
    count: int = 1
    fault: str = "member.restart"
    at_itself: bool = False
    lasts: tuple[str, str] = ("down_for", "3s")

    @property
    def group(self) -> str:
        """Its group."""
        return self.program.replace("_", "-")

    @property
    def members(self) -> list[str]:
        """The names of the members with the bug."""
        kind = "" if self.static else "-dynamic"
        return [f"{self.group}{kind}-{n}" for n in range(self.count)]

    def entries(self) -> list[dict[str, Any]]:
        """Return its members, as the group of an experiment has them."""
        client = {"command": [sys.executable, str(FOLDER / f"{self.program}.py")]}
        kind = "static" if self.static else "dynamic"
        entries: list[dict[str, Any]] = [
            {"kind": kind, "count": self.count, "client": client},
            {"kind": kind, "count": 2},
        ]
        if self.static:
            entries[0]["instance_id"] = f"{self.group}-{{n}}"
            entries[1]["instance_id"] = f"{self.group}-true-{{n}}"
        return entries

    def fault_of_its_group(self) -> dict[str, Any]:
        """Return what happens in its group."""
        true_one = f"{self.group}-true-0" if self.static else f"{self.group}-dynamic-{self.count}"
        name = self.members[0] if self.at_itself else true_one
        key, lasts = self.lasts
        return {"fault": self.fault, "target": {"names": [name]}, "at": "4s", key: lasts}


ISSUES_OWN = (
    Planted(
        "stale_generation",
        "Parsely/pykafka#612",
        "uses-its-generation",
        ("OFFSET_COMMIT under generation ", "ILLEGAL_GENERATION"),
        also=("joins-when-asked",),
    ),
    Planted(
        "deaf",
        "confluentinc/confluent-kafka-python#1305",  # heartbeats go on there, it never joins
        "rejoins",
        ("REBALANCE_IN_PROGRESS", "12"),
        also=("goes-on-with-its-heartbeats",),
    ),
    Planted(
        "shared_instance_id",
        "twmb/franz-go#479",
        "has-an-instance-id-of-its-own",
        ("shared-instance-id-0", "shared-instance-id-1", "both use", "payments-prod"),
        static=True,
        count=2,
    ),
    Planted(
        "foreign_commit",
        "akka/alpakka-kafka#118",
        "commits-what-it-owns",
        ("commits orders-", "owns it"),
    ),
    Planted(
        "slow_processing",
        "dpkp/kafka-python#2070",
        "stays-while-it-runs",
        ("by itself",),
        also=("rejoins",),
    ),
)
"""The five of the issue that asked for them, written anew."""
MORE = (
    Planted(
        "leaves_though_static",
        "confluentinc/confluent-kafka-go#649",
        "stays-when-static",
        ("LEAVE_GROUP",),
        static=True,
        at_itself=True,
    ),
    Planted(
        "never_leaves",
        "confluentinc/librdkafka#2010",
        "leaves-when-dynamic",
        ("no LEAVE_GROUP",),
        at_itself=True,
    ),
    Planted(
        "abandoned_id",
        "confluentinc/librdkafka#5569",
        "takes-its-id",
        ("MEMBER_ID_REQUIRED",),
        at_itself=True,
    ),
    Planted(
        "fenced_goes_on",
        "twmb/franz-go#931",
        "stops-when-fenced",
        ("FENCED_INSTANCE_ID",),
        also=("does-not-loop",),  # kafka-python sends a fenced JOIN_GROUP again without a pause
        static=True,
        fault="member.duplicate-instance",
        at_itself=True,
        lasts=("lasts", "10s"),
    ),
    Planted(
        "heartbeats_between_polls",
        "tulios/kafkajs#447",
        "keeps-its-session",
        ("session timeout of 10",),
        also=("goes-on-with-its-heartbeats",),
    ),
    Planted(
        "rejoins_at_refresh",
        "confluentinc/confluent-kafka-python#559",
        "joins-when-asked",
        ("no answer asked for it",),
    ),
    Planted(
        "rejoins_with_lost_id",
        "kafka4beam/brod#177",
        "rejoins-afresh",
        ("UNKNOWN_MEMBER_ID",),
        also=("does-not-loop",),
        fault="member.pause",
        at_itself=True,
        lasts=("down_for", "13s"),
    ),
    Planted(
        "commits_first",
        "dpkp/kafka-python#722",
        "loses-no-record",
        ("commits orders-", "lost"),
        fault="member.kill",
        at_itself=True,
    ),
    Planted(
        "commits_out_of_order",
        "segmentio/kafka-go#439",
        "commits-on",
        ("committed orders-", "back from offset", "times"),
    ),
    Planted(
        "processes_after_revoke",
        "OpenLiberty/open-liberty#10169",
        "stops-when-given-up",
        ("of orders-", "gave it up"),
        also=("keeps-order", "begins-at-its-commit"),
    ),
)
"""Ten more."""
PLANTED = (*ISSUES_OWN, *MORE)
TRUE = Planted("true_client")
"""The same without a bug."""


def experiment(planted: Sequence[Planted]) -> Mapping[str, Any]:
    """Return an experiment of groups with bugs, and of one without."""
    every = (*planted, TRUE)
    return {
        "name": "planted-clients",
        "cluster": {
            "brokers": 1,
            "config": {"group.initial.rebalance.delay.ms": 500, "offsets.topic.num.partitions": 24},
        },
        "workload": {
            "topics": [{"name": "orders", "partitions": 6, "replication_factor": 1}],
            "producers": [{"topic": "orders", "rate": 50}],
            "groups": [_group(one) for one in every],
        },
        "steady_state": {"within": "90s", "probes": [*map(_is_in, every)]},
        "faults": [one.fault_of_its_group() for one in every],
        "phases": {"impact": "45s", "recovery": "5s"},
    }


def _group(planted: Planted) -> dict[str, Any]:
    return {
        "name": planted.group,
        "topics": ["orders"],
        "session_timeout": "10s",
        "heartbeat_interval": "1s",
        "max_poll_interval": "12s",
        "commit_interval": "1s",
        "members": planted.entries(),
    }


def _is_in(planted: Planted) -> dict[str, Any]:
    """Return a probe of a group's members: three, though two of four may share an id."""
    name = f"{planted.group} is in"
    return {"name": name, "probe": "group.members", "group": planted.group, "tolerance": 3}
