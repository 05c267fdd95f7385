"""The same experiment, with members of three clients, costs the same on two coordinators."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from reports.judgement.run.journal import phase_of
from tests.groupquake.conftest import Command

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.usefixtures("spark")]

CLIENTS = ("wire", "librdkafka", "java")
RELEASES = (("4.3.0",), ("3.9.1", "--coordinator", "scala"))


def experiment(folder: Path, brokers: int, static: int, dynamic: int) -> Path:
    """Write an experiment with a static and a dynamic group of each client.

    Whatever happens one after the other costs the same anywhere: a static member restarts, one
    outstays its session, and a dynamic member leaves and joins.
    """
    groups, faults = [], []
    for number, client in enumerate(CLIENTS):
        for kind, count in (("static", static), ("dynamic", dynamic)):
            name = f"{client}-{kind}"
            named = {"instance_id": f"{name}-{{n}}"} if kind == "static" else {}
            groups.append(
                {
                    "name": name,
                    "topics": ["orders"],
                    "session_timeout": "10s",
                    "heartbeat_interval": "700ms",
                    "max_poll_interval": "60s",
                    "commit_interval": "2s",
                    "members": [{"kind": kind, "count": count, "client": client, **named}],
                }
            )
            first = f"{name}-0" if kind == "static" else f"{name}-dynamic-0"
            restart = {"fault": "member.restart", "target": {"names": [first]}}
            at_s = 2 + 2 * number
            faults.append({**restart, "at": f"{at_s}s", "down_for": "5s"})
            if kind == "static":
                faults.append({**restart, "at": f"{at_s + 10}s", "down_for": "16s"})
    probes = [
        {"name": f"{one['name']} {probe}", "group": one["name"], "probe": probe, "tolerance": is_}
        for one in groups
        for probe, is_ in (("group.members", "all"), ("group.state", "Stable"))
    ]
    file = folder / "three-clients.yaml"
    document = {
        "name": "three-clients",
        "cluster": {
            "brokers": brokers,
            "config": {
                # JVMs start slowly: all members of a group join in its first rebalance
                "group.initial.rebalance.delay.ms": 15_000,
                "offsets.topic.num.partitions": 6,
            },
        },
        "workload": {"topics": [{"name": "orders", "partitions": 6}], "groups": groups},
        "steady_state": {"within": "120s", "probes": probes},
        "faults": faults,
        "phases": {"impact": "45s", "recovery": "5s"},
        "expect": [],
    }
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def rebalances(groupquake: Command, file: Path, release: tuple[str, ...]) -> Counter[Any]:
    """Run an experiment; count the rebalances until the load ends by group, phase and reason."""
    runs = file.parent / "-".join(release)
    done = groupquake("run", file, "--seed", 1, "--runs", runs, "--kafka", *release)
    assert done.code == 0, done.out + done.err
    verdict = json.loads((runs / "latest" / "verdict.json").read_text())
    for group in verdict["groups"].values():
        assert group["responses_explained"] == group["responses_checked"] > 20
    phases = [(one["phase"], one["began_at_ms"]) for one in verdict["phases"]]
    observed = pd.read_parquet(runs / "latest" / "tables" / "observed")
    counts = Counter(
        (row.group, phase_of(phases, row.started_ms), row.reason)
        for row in observed.itertuples()
        if row.started_ms > 0
    )
    return Counter({key: count for key, count in counts.items() if key[1] != "teardown"})


@pytest.mark.parametrize(
    ("brokers", "static", "dynamic"),
    [
        pytest.param(1, 2, 2, marks=pytest.mark.long),
        pytest.param(3, 6, 4, marks=pytest.mark.exhaustive),
    ],
)
def test_the_same_rebalances_on_both(
    brokers: int, static: int, dynamic: int, groupquake: Command, tmp_path: Path
) -> None:
    file = experiment(tmp_path, brokers, static, dynamic)
    java, scala = (rebalances(groupquake, file, release) for release in RELEASES)
    assert java == scala
    for client in CLIENTS:
        of = {key[1:]: count for key, count in java.items() if key[0] == f"{client}-static"}
        assert of.pop(("impact", "session_expired")) == 1
        assert of.pop(("impact", "new_member")) == 1
        assert [phase for phase, _ in of] == ["formation"], "a restart in the session costs nothing"
        of = {key[1:]: count for key, count in java.items() if key[0] == f"{client}-dynamic"}
        assert of.pop(("impact", "leave")) == of.pop(("impact", "new_member")) == 1
        assert [phase for phase, _ in of] == ["formation"]
