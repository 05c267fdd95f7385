"""Every group that an experiment runs must be in the evidence, those of wire scripts too."""

import pytest

from reports.judgement import verdict
from reports.judgement.recording import Recording
from reports.judgement.verdict import Results
from tests.recorded.logs import RECORDINGS

RUN = RECORDINGS["kafka-4.3.0"].folder.parent / "leaders" / "skip-assignment-4.3.0"
GROUPS = {"static", "java", "leader_returns", "leader_misses"}


def judged(groups: set[str]) -> dict:
    """Judge the run as if only these groups had requests, all of them explained."""
    nothing = Results({}, [], [], [], [], [], {}, {}, dict.fromkeys(groups, (1, 1)), {}, {}, {}, {},
                      [])  # fmt: skip
    return verdict.judge(Recording(RUN).run, nothing, [], "4.3")


def test_the_run_has_groups_of_real_clients_and_of_wire_scripts() -> None:
    assert set(Recording(RUN).groups) == set(Recording(RUN).run.experiment.group_names) == GROUPS


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_group_without_requests_is_a_doubt(group: str) -> None:
    doubt = f"group {group}: no request of it in any broker's log"
    without = judged(GROUPS - {group})
    assert doubt in without["unknown_because"]
    assert set(without["groups"]) == GROUPS
    assert doubt not in judged(GROUPS)["unknown_because"]
