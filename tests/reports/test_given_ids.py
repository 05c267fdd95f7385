"""Member ids once given are never given again: lies in recorded evidence.

A member's id is replaced by another everywhere in its group, so that no line contradicts another.
"""

import re
from dataclasses import replace

import pytest

from reports.judgement.findings import Finding
from reports.judgement.recording import Recording
from selftest.mutants.judging import found
from selftest.mutants.synthesized_run import SynthesizedRun
from tests.reports.alter import Copy

FRESH = "01234567-89ab-cdef-0123-456789abcdef"


def given_ids(copy: Copy, member: str) -> list[str]:
    """Return the ids that a client or an instance was given, in order."""
    given = re.compile(rf'"memberId":"".*"response":\{{[^\[]*"memberId":"({member}-[^"]+)"')
    found_ids = (given.search(line.text) for line in copy.lines if '"JOIN_GROUP"' in line.text)
    return [match[1] for match in found_ids if match]


def renamed(recording: Recording, copy: Copy, old: str, new: str) -> list[Finding]:
    """Judge a group in which a member has another id."""
    lines = tuple(replace(line, text=line.text.replace(old, new)) for line in copy.lines)
    return found(SynthesizedRun(recording.folder, recording, copy.group, lines), copy.group)


CASES = {
    "the third process of an instance, the first": ("fencing", "a", 2, 0),
    "in another group": ("returning", "b", 2, 0),
    "a member that was removed in between": ("sessions", "b", 1, 0),
    "twice, the first": ("sessions", "b", 3, 0),
    "twice, the second": ("sessions", "b", 3, 1),
    "a dynamic member that left in between": ("forming", "forming-a", 1, 0),
    "that left twice": ("forming", "forming-a", 2, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_an_id_is_given_once(recording: Recording, case: str) -> None:
    group, member, nth, of = CASES[case]
    copy = Copy.of(recording, group, group)
    ids = given_ids(copy, member)
    fresh = ids[nth][: -len(FRESH)] + FRESH
    assert renamed(recording, copy, ids[nth], fresh) == []
    (finding,) = renamed(recording, copy, ids[nth], ids[of])
    assert finding.kind == "wrong_answer"
    assert finding.proven
    assert f"member_id={ids[of]}, which was given before" in finding.observed


def test_a_successor_gives_no_id_of_its_predecessors(recording: Recording) -> None:
    """The instance's id of before the failover is forgotten there: it was replaced."""
    copy = Copy.of(recording, "failover", "failover")
    first, second = given_ids(copy, "a")
    findings = renamed(recording, copy, second, first)
    (wrong,) = (finding for finding in findings if finding.proven)
    assert wrong.kind == "wrong_answer"
