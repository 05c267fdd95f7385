"""Experiments of one group, for a load whose members are its own."""

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
            "cluster": {"brokers": 1},
            "workload": {"topics": [orders], "groups": [group]},
            "phases": {"impact": "5s", "recovery": "1s"},
        },
        sort_keys=False,
    )
