"""What is found of one group of a recorded run, told truly or otherwise.

The oracle and the rules of what is a root and what is proven are those of `groupquake report`
(`reference_coordinator.replay`, `reports.findings`); the lines are read and the timelines laid side
by side in plain Python, because this is done hundreds of times.
"""

from collections.abc import Iterable
from dataclasses import asdict

from groupquake.mutants import timelines
from groupquake.mutants.recording import Recording
from groupquake.mutants.retold import Retold
from groupquake.mutants.storyteller import Storyteller
from reference_coordinator.replay import replay
from reference_coordinator.step import Step
from reports import findings
from reports.findings import Finding


def found(recording: Recording, group: str) -> list[Finding]:
    """Return the differences between what was observed of a group and what was due.

    All of them up to the first answer that is not explained: what comes after may follow from it.
    """
    evidence = recording.evidence_with_faults(group)
    outcome = replay(evidence, recording.profile, first_alone=True)
    until_ms = min((violation.at_ms for violation in outcome.violations), default=float("inf"))
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
    rows = findings.collect(
        [{"group": group, **asdict(violation)} for violation in outcome.violations],
        asked,
        timelines.compare(timelines.observed(recording, group), timelines.expected(group, outcome)),
        timelines.compare_member_lines(recording, group, outcome),
    )
    waits = (seen.request.get("rebalanceTimeoutMs") or 0.0 for seen in evidence.requests)
    first = [row for row in rows if row.at_ms <= until_ms]
    return findings.around_kills(first, recording.run.kills, {group: max(waits, default=0.0)})


def told_by(coordinator: Step, recording: Recording, group: str) -> Retold:
    """Tell a group's story as a coordinator would have had it, asked what the brokers were."""
    story = Storyteller(recording, group, group, coordinator).tell()
    return Retold(recording.folder, recording, tuple(story))


def proven(differences: Iterable[Finding]) -> list[Finding]:
    """Return the roots that make a verdict `fail`."""
    return [finding for finding in differences if finding.root is None and finding.proven]
