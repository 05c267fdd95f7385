"""What the named experiments have to be, whatever else changes about them."""

from pathlib import Path

from chaos.timing import SILENCE_GRACE_MS
from scenarios import Experiment, load, named, names
from scenarios.faults.group import GroupBounce
from scenarios.faults.member import MemberKill, MemberRestart

Library = dict[str, Experiment]

BY_HAND = "by-hand"
"""The one without faults of its own."""


def test_the_names_are_the_files() -> None:
    for name in names():
        assert named(name).name == name
        assert named(name).description
        assert named(name).steady_state.probes is None, "each group is whole and Stable"


def test_dumped_and_loaded_again(library: Library, tmp_path: Path) -> None:
    for name, experiment in library.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(experiment.dump(), "utf-8")
        assert load(path) == experiment


def test_every_group_has_a_bound_on_its_rebalances(library: Library) -> None:
    for name, experiment in library.items():
        if name == BY_HAND:  # nobody knows what will be broken
            assert not experiment.expect
            continue
        bounded = {e.group for e in experiment.bounds if e.rebalances.max is not None}
        clients = {group.name for group in experiment.workload.groups}
        assert clients <= bounded <= clients | {*experiment.workload.wire_scripts}


def test_the_impact_phase_holds_every_fault(library: Library) -> None:
    for name, experiment in library.items():
        assert bool(experiment.faults) is (name != BY_HAND)
        start_ms = min(fault.at_ms for fault in experiment.faults) if experiment.faults else 0
        for fault in experiment.faults:
            lasts_ms = max(
                getattr(fault, name, 0) for name in ("down_for_ms", "lasts_ms", "for_ms")
            )
            if isinstance(fault, GroupBounce):
                hit = [
                    member
                    for member in experiment.members()
                    if member.group == fault.group and fault.target in ("all", member.kind)
                ]
                waves = -(-len(hit) // (fault.at_once or 1))
                lasts_ms += (waves - 1) * fault.every_ms
            assert fault.at_ms + lasts_ms < start_ms + experiment.phases.impact_ms


def test_every_absence_is_long_enough_to_be_witnessed(library: Library) -> None:
    """Two heartbeat intervals, from the last request on, which may be in flight at the stop."""
    for experiment in library.values():
        heartbeat_ms = max(group.heartbeat_interval_ms for group in experiment.workload.groups)
        for fault in experiment.faults:
            if isinstance(fault, MemberRestart | MemberKill | GroupBounce):
                assert fault.down_for_ms >= 2 * heartbeat_ms + SILENCE_GRACE_MS


def test_three_experiments_keep_a_member_away_for_longer_than_its_session(
    library: Library,
) -> None:
    outstayed = {
        name
        for name, experiment in library.items()
        for fault in experiment.faults
        if isinstance(fault, MemberRestart | GroupBounce)
        and fault.down_for_ms >= max(g.session_timeout_ms for g in experiment.workload.groups)
    }
    assert outstayed == {"session-expiry", "batch-scaling", "gone-and-back"}
