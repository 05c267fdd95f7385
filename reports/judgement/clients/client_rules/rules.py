"""The rules by their names, with their sources; a rule yields where a life breaks it."""

from collections.abc import Mapping

from reports.judgement.clients.client_rules.broken import Rule
from reports.judgement.clients.client_rules.joining import (
    does_not_loop,
    joins_when_asked,
    keeps_its_id,
    rejoins,
    rejoins_afresh,
    stays_when_its_coordinator_moves,
    syncs,
    takes_its_id,
)
from reports.judgement.clients.client_rules.membership import (
    carries_its_instance_id,
    gives_up,
    heartbeats_at_its_interval,
    keeps_its_session,
    leaves_when_dynamic,
    stays_when_static,
    stops_when_fenced,
)

RULES: Mapping[str, Rule] = {
    "rejoins": rejoins,
    "gives-up-what-it-lost": gives_up,
    "rejoins-afresh": rejoins_afresh,
    "keeps-its-id": keeps_its_id,
    "takes-its-id": takes_its_id,
    "stops-when-fenced": stops_when_fenced,
    "stays-when-static": stays_when_static,
    "leaves-when-dynamic": leaves_when_dynamic,
    "syncs": syncs,
    "does-not-loop": does_not_loop,
    "joins-when-asked": joins_when_asked,
    "heartbeats-at-its-interval": heartbeats_at_its_interval,
    "keeps-its-session": keeps_its_session,
    "stays-when-its-coordinator-moves": stays_when_its_coordinator_moves,
    "carries-its-instance-id": carries_its_instance_id,
}
"""The rules by their names; the docstring of each says what it demands."""

OWNS_ALONE = "owns-alone"
"""A rule about what clients print, which `judgement.owners` judges."""
COMMITS_ON = "commits-on"
"""A rule about what clients commit, which `judgement.offsets` judges."""
ON_TIME = frozenset({
    "rejoins", "gives-up-what-it-lost", "rejoins-afresh", "stops-when-fenced", "syncs",
    "heartbeats-at-its-interval", "keeps-its-session", OWNS_ALONE,
})  # fmt: skip
"""The rules about what a client does in time, or once it can be expected to know an answer."""

DEMANDS: Mapping[str, str] = {
    **{name: " ".join((rule.__doc__ or "").split()) for name, rule in RULES.items()},
    OWNS_ALONE: "A member gives up a partition before another is assigned it, or once it is out.",
    COMMITS_ON: "A member goes on from the offset of its partition that was committed last.",
}
"""What each rule demands, in words."""

SOURCES: Mapping[str, str] = {
    "rejoins": "KIP-62 (the rebalance timeout); AbstractCoordinator's heartbeat handler",
    "gives-up-what-it-lost": "KIP-345; AbstractCoordinator.resetStateOnResponseError",
    "rejoins-afresh": "AbstractCoordinator.resetStateOnResponseError (UNKNOWN_MEMBER_ID)",
    "keeps-its-id": "KIP-62; AbstractCoordinator (REBALANCE_IN_PROGRESS keeps the generation)",
    "takes-its-id": "KIP-394",
    "stops-when-fenced": "KIP-345: FENCED_INSTANCE_ID is fatal",
    "stays-when-static": "KIP-345: a static member never sends LeaveGroup at its close",
    "leaves-when-dynamic": "the consumer protocol; AbstractCoordinator.close",
    "syncs": "the consumer protocol; KAFKA-9752 (the pending-sync timer)",
    "does-not-loop": "retry.backoff.ms, 100 ms by default; KIP-580",
    "joins-when-asked": "the consumer protocol: a new subscription or new metadata asks for it",
    "heartbeats-at-its-interval": "KIP-62: heartbeat.interval.ms",
    "keeps-its-session": "KIP-62: heartbeats go on while the application processes records",
    "stays-when-its-coordinator-moves": "NOT_COORDINATOR is retriable; AbstractCoordinator keeps"
    " its generation",
    OWNS_ALONE: "the consumer protocol; KIP-429",
    COMMITS_ON: "the consumer protocol: an owner fetches the committed offset and goes on from it",
    "carries-its-instance-id": "KIP-345: group.instance.id in Heartbeat v3, SyncGroup v3 and"
    " OffsetCommit v7",
}
