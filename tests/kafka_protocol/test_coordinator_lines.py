"""Lines that the recordings do not hold (`lines.yaml`): of failed writes, and of other releases."""

import re
from pathlib import Path

import pytest
import yaml

from kafka_protocol.append_errors import AppendError, append_error
from kafka_protocol.coordinator_lines import Grammar, grammar_of
from reports.judgement.timelines import timeline

LINES = yaml.safe_load(Path(__file__).with_name("lines.yaml").read_text("utf-8"))
"""By release and coordinator."""
SERVICE = "kafka.coordinator.group.GroupCoordinator"
NEW = "static-6-00000002-7972-404a-b410-0a3e924e4948"


def parsed_by(grammar: Grammar, logger: str, message: str) -> list[tuple[str, list[str]]]:
    return [
        (template.name, list(match.groups()))
        for template in grammar.templates
        if logger in template.loggers and (match := re.match(template.regex, message))
    ]


@pytest.mark.parametrize("release", LINES)
def test_each_line_has_one_template(release: str) -> None:
    for one in LINES[release]:
        found = parsed_by(grammar_of(*release.split("-")), one["logger"], one["line"])
        assert found == [(one["template"], one["fields"])]
        if "error" in one:
            assert append_error(one["line"]) is AppendError[one["error"]]


def test_lines_before_3_0_are_worded_otherwise_from_then_on() -> None:
    for one in LINES["2.8.1-scala"]:
        assert parsed_by(grammar_of("3.0.0", "scala"), one["logger"], one["line"]) == []


def test_why_it_rebalanced_before_2_8() -> None:
    for version, text, name in (
        ("2.4.1", f"Adding new member {NEW} with group instanceid Some(static-6)", "new_member"),
        ("2.5.1", f"Adding new member {NEW} with group instance id Some(static-6)", "new_member"),
        ("2.5.1", f"Updating metadata for static member {NEW} with instance id Some(static-6)",
         "static_replaced"),
        ("2.6.0", f"Updating metadata for member {NEW}", "member_metadata"),
        ("2.6.1", f"Updating metadata for member {NEW} during Stable", "member_metadata"),
        ("2.6.1", f"leader {NEW} re-joining group during Stable", "leader_rejoin"),
        ("2.7.2", f"removing member {NEW} on LeaveGroup", "leave"),
    ):  # fmt: skip
        grammar = grammar_of(version, "scala")
        assert timeline.reason({"reason": text}, grammar) == (name, NEW)


def test_a_leader_that_rejoins_has_no_reason_of_its_own_until_2_6_1() -> None:
    instead = {v: grammar_of(v, "scala").reasons_instead for v in ("2.4.1", "2.6.0", "2.6.1")}
    assert instead["2.4.1"] == instead["2.6.0"] == {"leader_rejoin": "member_metadata"}
    assert instead["2.6.1"] == {}


def test_leave_lines_before_client_reasons() -> None:
    """KIP-800, 3.2."""
    member = f"MemberMetadata(memberId={NEW}, groupInstanceId=None, clientId=c)"
    left = f"Member {member} has left group g through explicit `LeaveGroup`"
    for how in (" request", "; client reason: not provided"):
        found = parsed_by(grammar_of("3.9.1", "scala"), SERVICE, left + how)
        assert found == [("left", [NEW, "g"])]
