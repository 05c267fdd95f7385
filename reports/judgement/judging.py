"""Makes the context in which groups are judged, once all logs of a run are read."""

from math import inf
from typing import NamedTuple

from reference_coordinator.classic.profiles import Profile
from reports.judgement.coordinators.coordinator_epochs import EPOCH_TEMPLATES, coordinator_epochs
from reports.judgement.digest import Digester
from reports.judgement.log.log_places import Level
from reports.judgement.log.merging import Merged
from reports.judgement.log.split_rows import is_patchy
from reports.judgement.run.deliveries import Deliveries
from reports.judgement.run.disturbance import Act
from reports.judgement.run.faults import act_of
from reports.judgement.run.machine_log import as_stalls, stood_still
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.fenced_lines import fenced_lines
from reports.judgement.timelines.member_lines import FENCED
from reports.judgement.witnesses import Tap
from reports.timing import PARTITIONS_NOTICED_MS
from scenarios.clients import kind_of
from scenarios.setup import DUPLICATE
from scenarios.wire_scripts import NEEDS


class Rules(NamedTuple):
    """The rules that a run is judged by; those with every promise of KIP-345 kept; the release's.

    See `RunContext`.
    """

    profile: Profile
    promised: Profile
    own: Profile | None


def context_of(
    run: RunFolder, rules: Rules, merged: Merged, deliveries: Deliveries, tap: Tap | None = None
) -> RunContext:
    """Return the context of a run."""
    of_brokers = [row for row in merged.of_all_groups if row["template"] in EPOCH_TEMPLATES]
    fenced = (row for row in merged.of_all_groups if row["template"] == FENCED)
    named = (one["partition"] for one in merged.processes if one["partition"] is not None)
    most = max(named, default=None)
    pauses, standstills = stood_still(run.stalls, run.standstills, merged.signs)
    groups = {group.name: group for group in run.experiment.workload.groups}
    phases = dict(run.phases)
    members = {
        name: (one, groups[one.group])
        for one in run.experiment.members()
        for name in (one.name, one.name + DUPLICATE)
    }
    return RunContext(
        run.grammar,
        rules.profile,
        rules.promised,
        coordinator_epochs(
            of_brokers,
            merged.processes,
            None if most is None else most + 1,
            run.requests_enabled,
            run.reconnects_ms,
            run.outside.coordinated_before if run.outside else {},
            run.partings,
        ),
        (*pauses, *as_stalls(standstills)),
        standstills,
        run.late_ms,
        run.outages,
        first_alone=is_patchy(merged.processes),
        rules=rules.own,
        members={name: kind_of(one.client) for name, (one, _) in members.items()},
        heartbeat_ms={
            name: float(group.heartbeat_interval_ms) for name, (_, group) in members.items()
        },
        metadata_age_ms={
            name: float(group.metadata_max_age_ms)
            for name, (one, group) in members.items()
            if one.client == "librdkafka"
        },
        # some scripts ask for metadata at any time
        scripted=frozenset(
            script for script in run.experiment.workload.wire_scripts if not NEEDS[script].grows
        ),
        deliveries=deliveries,
        kills=run.killed_between,
        digester=Digester.of(run),
        partitions=run.first_partitions,
        absences=run.absences,
        acts=(
            *(act_of(fault, _noticed_ms(run)) for fault in run.faults),
            *(
                Act("load", script, frozenset(), -inf, inf, f"wire script {script}")
                for script in run.experiment.workload.wire_scripts
            ),
        ),
        loaded_ms=(phases.get("impact", inf), phases.get("teardown", inf)),
        has_history=run.has_history,
        fenced=fenced_lines(fenced, run.grammar),
        grown_ms=run.grown_ms,
        deleted=run.deleted,
        wire=run.restarts if run.level is Level.WIRE else None,
        tap=tap,
    )


def _noticed_ms(run: RunFolder) -> float:
    """Return how long members may take to notice that a topic grew or was deleted."""
    ages_ms = (group.metadata_max_age_ms for group in run.experiment.workload.groups)
    return max([PARTITIONS_NOTICED_MS, *(5.0 * age_ms for age_ms in ages_ms)])
