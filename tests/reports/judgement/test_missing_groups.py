"""Every group that an experiment runs must be in the evidence, those of wire scripts too."""

from typing import Any

from reports.judgement import verdict
from reports.judgement.recording import Recording
from reports.judgement.results import Results
from tests.recorded.logs import RECORDINGS

RUN = RECORDINGS["kafka-4.3.0"].folder.parent / "leaders" / "skip-assignment-4.3.0"
GROUPS = {"static", "java", "leader_returns", "leader_misses"}


def judged(recording: Recording, groups: dict[str, int]) -> dict[str, Any]:
    """Judge a run as if only these groups had requests, so many, all of them explained."""
    rows = {group: {"requests": count, "explained": count} for group, count in groups.items()}
    nothing = Results(groups=rows)
    return verdict.evaluate(recording.run, nothing, "4.3")


def test_the_run_has_groups_of_real_clients_and_of_wire_scripts() -> None:
    assert set(Recording(RUN).groups) == set(Recording(RUN).run.experiment.group_names) == GROUPS


def test_a_group_without_requests_is_a_doubt() -> None:
    """Even one request is evidence of a group; others that are missing are gaps."""
    recording = Recording(RUN)
    names = recording.run.experiment.group_names
    for group in names:
        for left in (0, 1):
            counts = dict.fromkeys(names, 50) | {group: left}
            found = judged(recording, {name: count for name, count in counts.items() if count})
            doubts = [one for one in found["unknown_because"] if "no request of it" in one]
            missing = f"group {group}: no request of it in any broker's log"
            assert doubts == ([] if left else [missing])
            assert set(found["groups"]) == set(names)
