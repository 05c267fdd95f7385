"""What makes a verdict `unknown`: what the replay bound from observation, and altered evidence."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from reports.judgement.clients.comparison import TWICE
from reports.judgement.explained.pages import page_of_kind, pages
from reports.judgement.explained.sentences import plain
from reports.judgement.findings import Finding
from reports.judgement.log.log_places import Level
from reports.judgement.run.disturbance import Disturbance, Source, clock
from reports.judgement.run.run_folder import RunFolder
from reports.timing import NEVER_ENDS_MS


class Doubt(NamedTuple):
    """Why a verdict is unknown, and what would settle it, both in words."""

    because: str
    settled_by: str


AGAIN = "run it again with the same seed"
DOUBTFUL = {
    "unlogged_return": Doubt(
        "members have ids that no response gave; their coordinator stored them,"
        " and was killed before it logged the JoinGroup",
        f"{AGAIN}: the kill comes before or after the line at another time",
    ),
    "not_authorized": Doubt(
        "requests were refused by the brokers' ACLs (GROUP_AUTHORIZATION_FAILED,"
        " TOPIC_AUTHORIZATION_FAILED)",
        "allow the clients' principal to read the group and its topics, and run it again",
    ),
    "broker_error": Doubt(
        "requests were answered with errors that are not the group's (quotas, unknown topics)",
        "lift the quota, or create the topic before the run, and run it again",
    ),
    "unseen_member": Doubt(
        "members whose requests did not pass the tap; what they did is in no evidence",
        "let every client of the group connect through the tap, or judge by the brokers' own logs",
    ),
    "unseen_takeover": Doubt(
        "times a coordinator answered as one that had loaded something else than answers tell of",
        "a run whose brokers' logs can be read: they have the lines about loads",
    ),
    TWICE: Doubt(
        "events stand twice in history.jsonl",
        "the history as the clients wrote it: restore the file, or run it again",
    ),
}  # what is a doubt where it was bound from observation, or counted of clients
SETTLED_BY = {
    Source.PRESSURE: f"{AGAIN} on a machine with CPUs to spare",
    Source.STANDSTILL: f"{AGAIN}: on a machine that does not stop its processes",
    Source.WRITES: f"{AGAIN}: on a machine that does not stop its processes",
    Source.ELECTION: f"{AGAIN}; if it is so again, see why the broker lost its leadership",
    Source.FAULT: f"{AGAIN} without that fault, or with it at another time",
    Source.LOG: "the whole logs, as the brokers wrote them: restore them, or run it again",
    Source.REQUESTS: "the whole logs, as the brokers wrote them: restore them, or run it again",
    Source.UNSEEN: f"{AGAIN}: a broker that is killed or cut off leaves other requests open",
    Source.CLOCK: "set the brokers' clocks by the machine that runs groupquake, and run it again",
    Source.HISTORY: "the history as the clients wrote it: restore the file, or run it again",
    Source.UNREAD: "a group whose requests can all be read: classic protocol, Kafka 2.8 or newer",
}
"""What would settle a doubt that a disturbance raises, by where that is known from."""
CHECKED_WITHIN = 1.5
"""After how many times `replica.lag.time.max.ms` a replica is out of sync at the latest: the leader
looks for such replicas each half of it (`ReplicaManager.startup`)."""
HISTORY_GONE = "the client history is gone: history.jsonl"
UNSEEN = ("unseen_member", "unseen_takeover")
"""Those that tell of what is in no evidence of the run."""


LISTED_ALREADY = (Source.LOG, Source.REQUESTS, Source.CLOCK, Source.HISTORY, Source.UNREAD)
"""Where a disturbance is a doubt in itself, which the verdict has anyway."""


def of_assumptions(run: RunFolder) -> Iterator[Doubt]:
    """Yield the doubt of each assumption."""
    for what in assumed(run):
        yield Doubt(what, "let groupquake read it: allow DescribeConfigs on the brokers")


def assumed(run: RunFolder) -> tuple[str, ...]:
    """Return what was assumed of a cluster of the user's, if answers depend on it, in words."""
    return run.outside.unsure if run.outside is not None and run.outside.assumed else ()


def altered(run: RunFolder, history: Sequence[str]) -> Iterator[Doubt]:
    """Yield what beside the brokers' logs is gone, or not understood (`history`)."""
    doubts = [*history, *run.altered_samples]
    if run.lost_history:
        doubts.append(HISTORY_GONE)
    if run.unsampled:
        doubts.append("samples of the machine are missing up to the teardown: machine.jsonl")
    for what in doubts:
        yield Doubt(what, "the file as the run wrote it: restore it, or run it again")


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


def failed_writes(run: RunFolder, bound: Mapping[str, Mapping[str, int]]) -> Iterator[Doubt]:
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
            yield Doubt(
                f"group {group}: {failed} failed writes were taken from the responses; with"
                f" {each} for each member and outage there are at most {most}",
                f"{AGAIN}; the brokers' server.log says why replicas did not confirm",
            )


def described(one: Disturbance) -> str:
    """Say in words what a disturbance is, and when it was."""
    began = f" from {clock(one.from_ms)}" if one.from_ms > 0 else ""
    ended = f" until {clock(one.until_ms)}" if one.until_ms < NEVER_ENDS_MS else ""
    return f"{one.because}{began}{ended}{' UTC' if began or ended else ''}"


def of_findings(found: Iterable[Finding]) -> Iterator[Doubt]:
    """Say why findings are not proven: one line for all of a group with one cause."""
    causes: dict[tuple[str, Doubt], list[Finding]] = defaultdict(list)
    for one in found:
        is_listed = one.may_be is not None and one.may_be.source in LISTED_ALREADY
        if one.root is None and not one.proven and not is_listed:
            causes[one.group, _doubt_of(one)].append(one)
    for (group, doubt), mine in causes.items():
        many = "1 finding" if len(mine) == 1 else f"{len(mine)} findings"
        about = f"group {group}: {many}, the first at {clock(mine[0].at_ms)} UTC"
        seen = "" if mine[0].may_be else f" ({plain(mine[0].observed)})"
        yield doubt._replace(because=f"{about}{seen}: {doubt.because}")


def _doubt_of(one: Finding) -> Doubt:
    if one.may_be is not None:
        because = f"may be due to this: {described(one.may_be)}"
        return Doubt(because, SETTLED_BY[one.may_be.source])
    page = pages()[page_of_kind(one.kind)]
    said = one.kind.replace("_", " ")
    return Doubt(f"{said}, which proves nothing", f"{page.advice.rstrip('.')} ({page.address})")
