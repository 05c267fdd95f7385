"""What every group of a run is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Outage, Stall
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.coordinators.wire_epochs import Restart
from reports.judgement.digest import Digester
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries
from reports.judgement.run.disturbance import Absence, Act, Deletions, Disturbance, Kill
from reports.judgement.timelines.fenced_lines import FencedLines
from reports.judgement.witnesses import Tap


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every group of a run is judged by; made once, by `judging.context_of`.

    Groups are judged by the rules of `profile`, and departures from the `promised` ones are listed.
    `promised` are the release's rules with every promise of KIP-345 kept. `stalls` are the times in
    which brokers stood still, `outages` those in which writes may have failed because
    a broker was down. `first_alone` ends a replay at the first wrong response. With the release's
    own `rules` the broken promises are named.
    """

    grammar: Grammar
    profile: Profile
    promised: Profile
    epochs: CoordinatorEpochs
    stalls: tuple[Stall, ...] = ()
    standstills: tuple[Disturbance, ...] = ()
    """The stalls that no fault of the journal is, with what they are known by."""
    late_ms: float = 0.0
    """How late anything may be for want of a CPU; 0 where nothing was, or nobody knows."""
    outages: tuple[Outage, ...] = ()
    first_alone: bool = False
    rules: Profile | None = None
    members: Mapping[str, str] = field(default_factory=dict)
    """What each member and its duplicate is: `librdkafka`, another library, or `command`."""
    heartbeat_ms: Mapping[str, float] = field(default_factory=dict)
    """The intervals of these."""
    metadata_age_ms: Mapping[str, float] = field(default_factory=dict)
    """After how long members of librdkafka ask for the metadata of topics again."""
    scripted: frozenset[str] = frozenset()
    """The groups of wire scripts that send what is logged, and nothing else."""
    deliveries: Deliveries = NOTHING_HELD
    """The answers that the tap did not hand to clients at once."""
    kills: tuple[Kill, ...] = ()
    digester: Digester | None = None
    """Makes the digests of groups; without it there are none."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """How many partitions each topic of the experiment has all the time."""
    absences: tuple[Absence, ...] = ()  # when faults on members had clients down
    acts: tuple[Act, ...] = ()  # what faults and wire scripts did to groups
    loaded_ms: tuple[float, float] = (-inf, inf)
    """From when until when the groups are there, as the load has them."""
    has_history: bool = True  # whether there is a client history
    fenced: FencedLines | None = None
    """The fenced lines of all groups; None where they are not known."""
    grown_ms: tuple[float, float] = (inf, inf)
    """When topics grew last, and when the load was stopped."""
    deleted: Deletions = field(default_factory=dict)  # the topics that faults delete
    wire: tuple[Restart, ...] | None = None
    """At level `wire`, where answers alone tell coordinator epochs: the restarts of brokers. Else
    None."""
    tap: Tap | None = None  # what is known of the tap where it is a second witness
