"""Makes the context in which groups are judged, once all logs of a run are read."""

from collections.abc import Sequence
from typing import NamedTuple

from reference_coordinator.classic.profiles import Profile
from reports.judgement.clients.known_clients import known_clients
from reports.judgement.coordinators.coordinator_epochs import LINES, coordinator_epochs
from reports.judgement.digest import Digester
from reports.judgement.lateness.broker_activity import as_stalls, stood_still
from reports.judgement.log.merging import Merged
from reports.judgement.log.processes import is_patchy
from reports.judgement.run.deliveries import Deliveries
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.machine_log import Standstill
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.fenced_lines import fenced_lines
from reports.judgement.timelines.said import FENCED
from reports.judgement.witnesses import Tap


class Rules(NamedTuple):
    """The rules that a run is judged by; those with every promise of KIP-345 kept; the release's.

    See `RunContext`.
    """

    profile: Profile
    promised: Profile
    own: Profile | None


def spans_of(run: RunFolder) -> Sequence[tuple[float, float]]:
    """Return when brokers may have stood still: the times of their lines then are asked for."""
    spans = [(one.from_ms, one.until_ms) for one in run.stalls]
    spans += ((one.from_ms, one.until_ms) for one in run.standstills)
    found: list[tuple[float, float]] = []
    for from_ms, until_ms in sorted(spans):
        if found and from_ms <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until_ms)
        else:
            found.append((from_ms, until_ms))
    return found


def context_of(
    run: RunFolder, rules: Rules, merged: Merged, deliveries: Deliveries, tap: Tap | None = None
) -> tuple[RunContext, Sequence[Standstill]]:
    """Return the context of a run, and when its brokers stood still by no fault of it."""
    of_brokers = [row for row in merged.of_all_groups if row["template"] in LINES]
    fenced = (row for row in merged.of_all_groups if row["template"] == FENCED)
    named = (one["partition"] for one in merged.processes if one["partition"] is not None)
    most = max(named, default=None)
    pauses, standstills = stood_still(run.stalls, run.standstills, merged.signs)
    context = RunContext(
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
        run.outages,
        first_alone=is_patchy(merged.processes),
        rules=rules.own,
        clients=known_clients(run.experiment, deliveries),
        kills=run.killed_between,
        unmeasured=run.unmeasured_kills,
        digester=Digester.of(run),
        partitions=run.first_partitions,
        absences=run.absences,
        broken_wires=run.broken_wires,
        has_history=run.has_history,
        fenced=fenced_lines(fenced, run.grammar),
        grown_ms=run.grown_ms,
        deleted=run.deleted,
        wire=run.restarts if run.level is Level.WIRE else None,
        tap=tap,
    )
    return context, standstills
