"""Whose rules judge a run: those of its release, or those that its command line names."""

import pytest

from reference_coordinator.classic.releases import PROFILES
from reports import EvidenceError
from reports.judgement import verdict
from reports.judgement.recording import Recording
from reports.judgement.results import Results
from reports.judgement.run.run_folder import RunFolder
from tests.recorded.logs import RECORDINGS

DEFECT = RECORDINGS["kafka-4.3.0"].folder.parent / "leaders" / "leader-misses-partition-4.3.0"
BUILD = {"version": "4.3.0-acme.1", "commit": "1156b2752aaa28ea", "place": "/opt/acme/libs"}


@pytest.fixture
def run() -> RunFolder:
    """Return a run of 4.3.0 of which the experiment expects a fail."""
    return Recording(DEFECT).run


def judged(run: RunFolder) -> dict[str, object]:
    rows = {name: {"requests": 9, "explained": 9} for name in run.experiment.group_names}
    nothing = Results(groups=rows)
    return verdict.evaluate(run, nothing, "4.3")


OWN = "a build of the user's, 4.3.0-acme.1"


@pytest.mark.parametrize(
    ("environment", "profile", "words", "is_foretold"),
    [
        ({}, "4.3", None, True),
        ({"profile": "4.1"}, "4.1",
         "Kafka 4.3.0, judged by the rules of 4.1, which --profile names", False),
        # what is expected of releases says nothing of a build
        ({"profile": "4.3", "build": BUILD}, "4.3",
         f"{OWN}, commit 1156b2752aaa28ea in /opt/acme/libs, judged by the rules of 4.3", False),
        ({"profile": "4.3", "build": BUILD | {"commit": None}}, "4.3",
         f"{OWN} in /opt/acme/libs, judged by the rules of 4.3", False),
        # `--kafka-home` with the jars of a release
        ({"build": BUILD | {"version": "4.3.0"}}, "4.3", None, True),
    ],
    ids=["its own", "named", "a build", "a build without a commit", "jars of a release"],
)  # fmt: skip
def test_whose_rules_judge_a_run(run, environment, profile, words, is_foretold):
    run.environment.update(environment)
    assert run.profile is PROFILES[profile]
    found = judged(run)
    assert found["judged_as"] == words == run.rules
    assert (found["foretold"] is not None) == is_foretold


@pytest.mark.parametrize("name", ["4.9", 7, ""])
def test_rules_that_nobody_knows(name, run):
    run.environment["profile"] = name
    with pytest.raises(EvidenceError, match=r"environment\.json: profile: .* is not known"):
        _ = run.profile
