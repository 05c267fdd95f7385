"""JUnit XML: green on a pass alone, failures for what is proven, errors for what is unknown."""

from xml.etree import ElementTree as ET

import pytest

from reports.judgement.missing.gaps import gap
from reports.page import junit
from tests.reports.page_run import IMPACT_MS

CASES = (
    "comparison static", "comparison dynamic", "expectations static", "expectations dynamic",
    "clients static", "clients dynamic", "faults verified", "evidence complete",
)  # fmt: skip


def answers_wrong(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    made.add_violation("2:778", IMPACT_MS + 30_000, "dynamic", "<evil>\x00\ud800&")


def misses_lines(made):
    made.gaps.append(gap("2", 431, IMPACT_MS, "3 lines missing"))


def rebalances_too_rarely(made):
    del made.comparison[6:]


def has_no_witness(made):
    made.doubt_fault("")


WRONG = (
    "wrong_answer (brokers/2/group.log:777): Broker 2 answered UNKNOWN_MEMBER_ID at 9.0 s. Due:"
    " Broker 2 had to answer the Heartbeat of dynamic-dynamic-3 with no error (NONE), by this rule:"
    " The classic group protocol: a coordinator answers each request by the state of its group."
)
RARE = (
    "The number of rebalances of dynamic in the impact was 4. Due: The number of rebalances of"
    " dynamic in the impact had to be 12..18, by this rule: The `expect` of the experiment."
)
MISSING = "evidence is missing: brokers/2/group.log:431: 3 lines missing"
UNSEEN = "member.restart on static-3: never carried out"
NO_WITNESS = "fault member.restart on static-3 was not verified: it was never carried out"
SCENARIOS = {
    "as it has to be": ([], "pass", {}),
    "findings": (
        [answers_wrong], "fail", {"comparison dynamic": ("failure", WRONG)},
    ),
    "a finding that missing evidence may explain": (
        [answers_wrong, misses_lines], "unknown",
        {"comparison dynamic": ("error", WRONG), "evidence complete": ("error", MISSING)},
    ),
    "an unmet expectation": (
        [rebalances_too_rarely], "fail", {"expectations dynamic": ("failure", RARE)},
    ),
    "an unmet expectation in doubtful evidence": (
        [rebalances_too_rarely, misses_lines], "unknown",
        {"expectations dynamic": ("error", RARE), "evidence complete": ("error", MISSING)},
    ),
    "a fault without witness": (
        [has_no_witness], "unknown",
        {"faults verified": ("error", UNSEEN), "evidence complete": ("error", NO_WITNESS)},
    ),
}  # fmt: skip


def suite_of(made):
    _, verdict, *_ = made.finish()
    return verdict["verdict"], ET.fromstring(junit.render(verdict))


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_marked(name, made):
    changes, verdict, expected = SCENARIOS[name]
    for change in changes:
        change(made)
    judged, suite = suite_of(made)
    assert (judged, suite.get("name")) == (verdict, "made-up-bounce")
    assert tuple(case.get("name") for case in suite) == CASES
    marked = {case.get("name"): child for case in suite for child in case}
    found = {name: (child.tag, child.get("message")) for name, child in marked.items()}
    assert found.keys() == expected.keys()
    for case, (tag, message) in expected.items():
        assert found[case][0] == tag
        assert found[case][1].startswith(message), case
    tags = [child.tag for child in marked.values()]
    counts = [str(len(CASES)), str(tags.count("failure")), str(tags.count("error"))]
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == counts


def test_findings_alike_are_one_line_which_xml_can_hold(made):
    made.add_violation("2:776", IMPACT_MS + 1_000, "dynamic", "<evil>\x00\ud800&")
    answers_wrong(made)
    _, suite = suite_of(made)
    (line,) = suite.findtext("testcase/failure").splitlines()
    assert "the Heartbeat of <evil>\\x00\\ud800& with" in line
    assert "And 2 more like it." in line
