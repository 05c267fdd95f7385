"""The experiment of a soak: members of two clients, and one fault after the other, by the seed."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from selftest.timing import AWAY_S, LONGEST_S

Json = dict[str, Any]
SHARES: Mapping[str, tuple[str, str, float]] = {
    "wire-static": ("wire", "static", 0.5),
    "wire-dynamic": ("wire", "dynamic", 0.3),
    "rdkafka-static": ("librdkafka", "static", 0.15),
    "rdkafka-dynamic": ("librdkafka", "dynamic", 0.05),
}
"""The groups: client, kind, and their share of all members."""


DOCUMENT = """
cluster:
  brokers: 3
  config:
    group.initial.rebalance.delay.ms: 3000
    offsets.topic.num.partitions: 6
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 500
steady_state: {within: 120s}
expect: []
"""
"""What is the same in each experiment."""


def _one(group: str, chance: random.Random, sizes: Mapping[str, int]) -> Json:
    kind = "" if SHARES[group][1] == "static" else "dynamic-"
    return {"names": [f"{group}-{kind}{chance.randrange(sizes[group])}"]}


def _member_faults(group: str, chance: random.Random, sizes: Mapping[str, int]) -> Iterator[Json]:
    client, kind, _ = SHARES[group]
    target = _one(group, chance, sizes)
    yield {"fault": "member.restart", "target": target, "down_for": f"{AWAY_S}s"}
    yield {"fault": "member.kill", "target": target, "down_for": f"{AWAY_S}s"}
    if client == "wire":
        yield {"fault": "member.pause", "target": target, "down_for": f"{AWAY_S}s"}
    if kind == "static":
        yield {"fault": "member.duplicate-instance", "target": target, "lasts": f"{AWAY_S}s"}
        yield {
            "fault": "group.remove-members",
            "group": group,
            "instances": [f"{group}-{chance.randrange(sizes[group])}"],
        }
    yield {
        "fault": "members.scale",
        "group": group,
        "to": sizes[group] - max(1, sizes[group] // 10),
        "lasts": f"{AWAY_S}s",
    }


def _broker_faults(group: str) -> Iterator[Json]:
    target = {"coordinator-of": group}
    yield {"fault": "broker.kill", "target": target, "down_for": f"{AWAY_S}s"}
    yield {"fault": "broker.stop", "target": target, "down_for": f"{AWAY_S}s"}
    yield {"fault": "broker.restart", "target": target}
    yield {"fault": "broker.pause", "target": target, "down_for": "3s"}
    yield {"fault": "coordinator.move", "group": group}


def _tap_faults(group: str, chance: random.Random, sizes: Mapping[str, int]) -> Iterator[Json]:
    target = _one(group, chance, sizes)
    yield {"fault": "net.delay", "target": target, "for": f"{AWAY_S}s", "latency": "200ms"}
    yield {"fault": "net.isolate", "target": target, "for": f"{AWAY_S}s"}
    yield {"fault": "net.duplicate", "target": target, "for": f"{AWAY_S}s", "apis": ["HEARTBEAT"]}


def experiment(members: int, minutes: float, every_s: int, seed: int, *, tap: bool) -> Json:
    """Return the document of an experiment that lasts so long."""
    sizes = {name: max(2, round(members * share)) for name, (_, _, share) in SHARES.items()}
    faults = _faults(sizes, round(minutes * 60), every_s, random.Random(seed), tap=tap)
    last_s = max(one["at_s"] for one in faults) + LONGEST_S
    return {
        **yaml.safe_load(DOCUMENT),
        "name": "soak-tapped" if tap else "soak",
        "description": f"{members} members of two clients, and a fault every {every_s} s.",
        "workload": {
            "topics": [{"name": "orders", "partitions": 60, "replication_factor": 3}],
            "producers": [{"topic": "orders", "rate": 50}],
            "groups": [_group(name, size) for name, size in sizes.items()],
        },
        "faults": [{"at": f"{one.pop('at_s')}s", **one} for one in faults],
        "phases": {"impact": f"{max(1, last_s - every_s)}s", "recovery": "5s"},
    }


def _faults(
    sizes: Mapping[str, int], lasts_s: int, every_s: int, chance: random.Random, *, tap: bool
) -> list[Json]:
    """Draw the faults: all kinds come once, in an order of their own, before one comes again."""
    drawn: list[Json] = []
    kinds: list[str] = []
    for at_s in range(every_s, max(lasts_s - LONGEST_S, every_s) + 1, every_s):
        group = chance.choice(list(sizes))
        here = [*_member_faults(group, chance, sizes), *_broker_faults(group)]
        here += _tap_faults(group, chance, sizes) if tap else ()
        left = [one for one in here if one["fault"] not in kinds] or here
        if left is here:
            kinds.clear()
        fault = chance.choice(left)
        kinds.append(fault["fault"])
        drawn.append({"at_s": at_s, **fault})
    return drawn


def _group(name: str, size: int) -> Json:
    client, kind, _ = SHARES[name]
    named = {"instance_id": f"{name}-{{n}}"} if kind == "static" else {}
    return {
        "name": name,
        "topics": ["orders"],
        "session_timeout": "30s",
        "heartbeat_interval": "3s",
        "max_poll_interval": "60s",
        "members": [{"kind": kind, "count": size, "client": client, **named}],
    }
