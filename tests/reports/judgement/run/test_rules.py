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


def test_a_release_is_judged_by_its_own_rules(run):
    assert run.profile is PROFILES["4.3"]
    assert judged(run)["judged_as"] is None
    assert judged(run)["foretold"] is not None


def test_rules_that_are_named_count(run):
    run.environment["profile"] = "4.1"
    assert run.profile is PROFILES["4.1"]
    words = "Kafka 4.3.0, judged by the rules of 4.1, which --profile names"
    assert judged(run)["judged_as"] == words


def test_what_is_expected_of_releases_says_nothing_of_a_build(run):
    run.environment.update(profile="4.3", build=BUILD)
    found = judged(run)
    assert found["judged_as"] == (
        "a build of the user's, 4.3.0-acme.1, commit 1156b2752aaa28ea in /opt/acme/libs,"
        " judged by the rules of 4.3"
    )
    assert found["foretold"] is None
    run.environment["build"] = BUILD | {"commit": None}
    assert run.rules == (
        "a build of the user's, 4.3.0-acme.1 in /opt/acme/libs, judged by the rules of 4.3"
    )


@pytest.mark.parametrize("name", ["4.9", 7, ""])
def test_rules_that_nobody_knows(name, run):
    run.environment["profile"] = name
    with pytest.raises(EvidenceError, match=r"environment\.json: profile: .* is not known"):
        _ = run.profile


def test_a_build_of_which_nothing_is_named_is_a_release(run):
    """`--kafka-home` with the jars of a release."""
    run.environment["build"] = BUILD | {"version": "4.3.0"}
    assert run.profile is PROFILES["4.3"]
    assert run.rules is None
