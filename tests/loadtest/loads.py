"""What tests of a load share: experiments, and what they ask of it."""

from typing import Any

import yaml


def of_one_group(name: str, members: list[dict[str, Any]], **more: Any) -> str:
    """Return the text of an experiment; `more` are further keys of its group."""
    group = {
        "name": name,
        "topics": ["orders"],
        "session_timeout": "6s",
        "heartbeat_interval": "500ms",
        **more,
        "members": members,
    }
    orders = {"name": "orders", "partitions": 8, "replication_factor": 1}
    return yaml.safe_dump(
        {
            "name": "own",
            "cluster": {"brokers": 1, "config": {"group.min.session.timeout.ms": "300"}},
            "workload": {"topics": [orders], "groups": [group]},
            "phases": {"impact": "5s", "recovery": "1s"},
        },
        sort_keys=False,
    )


def others(rows, name):
    return {other: row for other, row in rows.items() if other != name}


def steps_of(load, member):
    """What happened to a member, with the partitions concerned."""
    lines = [line for line in load.history() if line["member"] == member]
    skipped = ("processed", "misnumbered", "committed", "error")
    return [
        (line["event"], line.get("partitions")) for line in lines if line["event"] not in skipped
    ]


def requests_of(broker, member, api):
    """Requests of a kind that the broker has answered to a member."""
    log = broker.brokers[0].group_log.read_text().splitlines()
    mark = f'"clientId":"{member}"'
    return [line for line in log if mark in line and f'"requestApiKeyName":"{api}"' in line]


def end(load):
    load.ask("quit")
    assert load.process.wait(timeout=60) == 0, load.output
    assert "Traceback" not in load.output
