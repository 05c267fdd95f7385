"""How many failed record writes a run may have: more of them are a doubt.

A coordinator waits for a replica that has stopped until that is no longer in sync: the leader looks
for such replicas each half of `replica.lag.time.max.ms` (`ReplicaManager.startup`), so for 1.5
times as long. Each write times out after `offsets.commit.timeout.ms`, and a client sends the next
request of a connection once it has the answer. A broker that gives a partition up fails one request
of each connection.
"""

from collections import Counter
from collections.abc import Mapping
from math import ceil

from reports.judgement.run.run_folder import RunFolder

CHECKED_WITHIN = 1.5
"""After how many times that lag a replica is out of sync at the latest."""


def doubts(run: RunFolder, bound: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Name the groups of which more writes were taken to have failed than outages explain.

    `bound` counts what was bound from observation, by group and kind. A time-out without any
    journalled outage may have one cause.
    """
    members = Counter(member.group for member in run.experiment.members())
    each = most_of_a_member(run)
    outages = max(len(run.outages), 1)
    return [
        f"group {group}: {failed} failed writes were taken from the responses; with"
        f" {each} for each member and outage there are at most {most}"
        for group, kinds in bound.items()
        for failed in [kinds.get("failed_write", 0)]
        for most in [each * outages * max(members[group], 1)]
        if failed > most
    ]


def most_of_a_member(run: RunFolder) -> int:
    """Return how many writes of one member may fail in one outage."""
    settings = run.settings
    return ceil(CHECKED_WITHIN * settings.replica_lag_ms / settings.commit_timeout_ms)
