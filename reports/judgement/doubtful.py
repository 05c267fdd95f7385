"""What makes a verdict `unknown`: what the replay bound from observation, and altered evidence."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil

from reports.judgement.clients.comparison import TWICE
from reports.judgement.findings import Finding
from reports.judgement.log.log_places import Level
from reports.judgement.run.disturbance import Disturbance, Source, clock
from reports.judgement.run.run_folder import RunFolder
from reports.timing import NEVER_ENDS_MS

DOUBTFUL = {
    "unlogged_return": "members have ids that no response gave; their coordinator stored them,"
    " and was killed before it logged the JoinGroup",
    "not_authorized": "requests were refused by the brokers' ACLs (GROUP_AUTHORIZATION_FAILED,"
    " TOPIC_AUTHORIZATION_FAILED)",
    "broker_error": "requests were answered with errors that are not the group's (quotas, unknown"
    " topics)",
    "unseen_member": "members whose requests did not pass the tap; what they did is in no evidence",
    "unseen_takeover": "times a coordinator answered as one that had loaded something else than"
    " answers tell of",
    TWICE: "events stand twice in history.jsonl",
}  # what is a doubt where it was bound from observation, or counted of clients, in words
CHECKED_WITHIN = 1.5
"""After how many times `replica.lag.time.max.ms` a replica is out of sync at the latest: the leader
looks for such replicas each half of it (`ReplicaManager.startup`)."""
HISTORY_GONE = "the client history is gone: history.jsonl"
UNSEEN = ("unseen_member", "unseen_takeover")
"""Those that tell of what is in no evidence of the run."""


LISTED_ALREADY = (Source.LOG, Source.REQUESTS, Source.CLOCK, Source.HISTORY, Source.UNREAD)
"""Where a disturbance is a doubt in itself, which the verdict has anyway."""


def assumed(run: RunFolder) -> tuple[str, ...]:
    """Return what was assumed of a cluster of the user's, if answers depend on it, in words."""
    return run.outside.unsure if run.outside is not None and run.outside.assumed else ()


def altered(run: RunFolder, history: Sequence[str]) -> Sequence[str]:
    """Say, in words, what beside the brokers' logs is gone, or not understood (`history`)."""
    doubts = [*history, *run.altered_samples]
    if run.lost_history:
        doubts.append(HISTORY_GONE)
    if run.unsampled:
        doubts.append("samples of the machine are missing up to the teardown: machine.jsonl")
    return doubts


def foreign_groups(run: RunFolder, bound: Mapping[str, Mapping[str, int]]) -> set[str]:
    """Return the groups with members that passed the tap by, of a cluster that others use, too.

    `bound` counts what was bound, by group. On a cluster of our own there are no other members.
    """
    if getattr(run.experiment.cluster, "kind", None) != "external":
        return set()
    return {group for group, kinds in bound.items() if kinds.get("unseen_member")}


def unsure_counts(
    run: RunFolder, bound: Mapping[str, Mapping[str, int]], kip_848: Collection[str]
) -> Collection[str]:
    """Return the groups of which a number of rebalances, or of owners, proves nothing.

    What passed the tap by may have begun rebalances, or own partitions. At level `wire` the replay
    alone tells of some rebalances: their number may rest on what it assumes, and after a census one
    may be counted twice.
    """
    on_wire = run.level is Level.WIRE
    if on_wire and assumed(run):
        return {*run.experiment.group_names, *bound}
    open_kinds = (*UNSEEN, "census") if on_wire else UNSEEN
    unseen = {group for group, kinds in bound.items() if any(map(kinds.get, open_kinds))}
    return unseen.union(kip_848)


def failed_writes(run: RunFolder, bound: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Name the groups of which more writes were taken to have failed than outages explain.

    `bound` counts what was bound from observation, by group and kind. A coordinator waits for a
    replica that has stopped until that is no longer in sync. Each write times out after
    `offsets.commit.timeout.ms`, and a client sends the next request of a connection once it has the
    answer. A broker that gives a partition up fails one request of each connection. A time-out
    without any journalled outage may have one cause.
    """
    members = Counter(member.group for member in run.experiment.members())
    each = ceil(CHECKED_WITHIN * run.settings.replica_lag_ms / run.settings.commit_timeout_ms)
    for group, kinds in bound.items():
        failed = kinds.get("failed_write", 0)
        most = each * max(len(run.outages), 1) * max(members[group], 1)
        if failed > most:
            yield (
                f"group {group}: {failed} failed writes were taken from the responses; with"
                f" {each} for each member and outage there are at most {most}"
            )


def described(one: Disturbance) -> str:
    """Say in words what a disturbance is, and when it was."""
    began = f" from {clock(one.from_ms)}" if one.from_ms > 0 else ""
    ended = f" until {clock(one.until_ms)}" if one.until_ms < NEVER_ENDS_MS else ""
    return f"{one.because}{began}{ended}{' UTC' if began or ended else ''}"


def of_findings(found: Iterable[Finding]) -> Iterator[str]:
    """Say why findings are not proven: one line for all of a group with one cause."""
    causes: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in found:
        is_listed = one.may_be is not None and one.may_be.source in LISTED_ALREADY
        if one.root is None and not one.proven and not is_listed:
            because = (
                f"{one.kind}, which proves nothing"
                if one.may_be is None
                else (f"may be due to this: {described(one.may_be)}")
            )
            causes[one.group, because].append(one)
    for (group, because), mine in causes.items():
        many = "1 finding" if len(mine) == 1 else f"{len(mine)} findings"
        yield f"group {group}: {many}, the first at {clock(mine[0].at_ms)} UTC: {because}"
