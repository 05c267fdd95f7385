"""What is found of one group of a recorded run, told truly or otherwise.

The oracle and the rules of what is a root and what is proven are those of `groupquake report`
(`reference_coordinator.replay`, `reports.findings`); the lines are read and the timelines laid side
by side in plain Python, because this is done hundreds of times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from groupquake.mutants import timelines
from groupquake.mutants.recording import Recording
from groupquake.mutants.retold import Retold
from groupquake.mutants.storyteller import Storyteller
from groupquake.mutants.timelines import Row
from reference_coordinator.replay import Evidence, Replay, replay
from reference_coordinator.step import Step
from reports import findings
from reports.findings import Finding


def found(recording: Recording, group: str) -> list[Finding]:
    """Return every difference between what was observed of a group and what was due."""
    evidence = recording.evidence_with_faults(group)
    outcome = replay(evidence, recording.profile)
    seen = timelines.observed(recording, group)
    rebalances = timelines.compare(seen, timelines.expected(group, outcome))
    member_lines = timelines.compare_member_lines(recording, group, outcome)
    return _findings(
        recording,
        evidence,
        outcome,
        [_anchored(recording, row, "expected_started_ms") for row in rebalances],
        [_anchored(recording, row, "due_ms") for row in member_lines],
    )


def fails(recording: Recording, group: str) -> bool:
    """Say whether what is told of a group makes a verdict `fail`.

    One answer that is proven wrong does; what comes after it need not be explained.
    """
    evidence = recording.evidence_with_faults(group)
    outcome = replay(evidence, recording.profile, first_alone=True)
    return bool(proven(_findings(recording, evidence, outcome)) or proven(found(recording, group)))


def _findings(
    recording: Recording,
    evidence: Evidence,
    outcome: Replay,
    rebalances: Sequence[Row] = (),
    member_lines: Sequence[Row] = (),
) -> list[Finding]:
    """Put unexplained answers and lines that do not match into one list, as a report does."""
    lines = {f"{line.broker}:{line.number}": line for line in recording.lines if line.request}
    asked = {}
    for seen in evidence.requests:
        line = lines[seen.id]
        assert line.request is not None
        asked[seen.id] = {
            "arrived_ms": line.at_ms - line.request["totalTimeMs"],
            "api": seen.api,
            "client_id": seen.client_id,
            "broker": seen.broker,
            "file": f"brokers/{seen.broker}/group.log",
            "line": line.number,
        }
    violations = [{"group": evidence.group, **asdict(one)} for one in outcome.violations]
    every = findings.collect(violations, asked, rebalances, member_lines)
    waits = (seen.request.get("rebalanceTimeoutMs") or 0.0 for seen in evidence.requests)
    longest = {evidence.group: max(waits, default=0.0)}
    return findings.around_kills(every, recording.run.kills, longest)


def _anchored(recording: Recording, row: Row, due: str) -> Row:
    """Give what is missing a place: the last line about its group before it should have been."""
    if row["line"] is not None:
        return row
    lines = (line for line in recording.lines if line.fields.get("group") == row["group"])
    before = [line for line in lines if line.at_ms <= row[due]]
    if not before:
        return row
    last = max(before, key=lambda line: line.at_ms)
    return {**row, "broker": last.broker, "line": last.number}


def told_by(coordinator: Step, recording: Recording, group: str) -> Retold:
    """Tell a group's story as a coordinator would have had it, asked what the brokers were."""
    story = Storyteller(recording, group, group, coordinator).tell()
    return Retold(recording.folder, recording, tuple(story))


def proven(differences: Iterable[Finding]) -> list[Finding]:
    """Return the roots that make a verdict `fail`."""
    return [finding for finding in differences if finding.root is None and finding.proven]
