"""Lies in each field of each coordinator line: found, or listed in `docs/lines.md` as not compared.

A count is one more, or one less; an id, an instance or a reason is another, or left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.coordinator_lines.template import CLIENT_REASON, parts_of
from reference_coordinator.classic.state import State
from reports.judgement.recording import Recording
from reports.judgement.timelines.member_lines import NOT_GIVEN
from tests.reports.alter import compared

Row = Mapping[str, Any]
COLUMNS = ("member", "instance", "generation", "members", "static_members", "reason")
WHERE = ("group", "partition")
"""Where a line is, no more."""
ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ANOTHER_ID = "11e35680-8f55-42fe-8c51-a9385f0a781f"
ALWAYS_FOUND = {
    "preparing": {"generation", "reason", "instance", "state", "client_reason"},
    "stabilized": {"generation", "members"},
    "assignment": {"member", "generation", "members", "static_members"},
    "static_replaced": {"member", "instance", "state"},
    "static_added": {"instance", "state"},
    "left": {"member"},
    "dynamic_given_id": {"state"},
    "pending_joins": {"state"},
    "session_expired": {"member"},
    "absent_dynamic_removed": {"removed"},
    "unsynced_removed": {"removed"},
    "empty": {"generation"},
}
"""Some of what is found on every recording."""


def not_compared() -> Mapping[str, str]:
    """Return, by template, the cell of the page with the fields that are not compared."""
    page = (Path(__file__).parents[3] / "docs" / "lines.md").read_text("utf-8")
    listed: dict[str, str] = {}
    for line in page.partition("## Not compared")[2].splitlines():
        names, fields, *_ = [*line.strip("| ").split(" | "), ""]
        for name in re.findall(r"`(\w+)`", names):
            listed[name] = listed.get(name, "") + fields
    return listed


def others(name: str, value: str, choices: Sequence[str]) -> list[str]:
    """Return what a line could say instead of a value."""
    if re.fullmatch(r"\d+", value):
        return [str(int(value) + 1), *([str(int(value) - 1)] if int(value) else [])]
    if name == "removed":
        return [ID.sub(ANOTHER_ID, value, count=1), f"a-{ANOTHER_ID}, {value}", ""]
    if ID.search(value):
        return [ID.sub(ANOTHER_ID, value, count=1)]
    if name == "state":
        return [state for state in State if state != value]
    return [one.replace("…", "another") for one in choices if one != value] or ["another"]


def lies(grammar: Grammar, row: Row) -> Iterator[tuple[str, str]]:
    """Yield messages with one field changed, and the name of the field."""
    name, message = row["template"], row["message"]
    text = grammar.template(name)
    values = text.values(message)
    not_given = values.get("ending", "").partition(CLIENT_REASON)[2] in NOT_GIVEN
    for part in parts_of(text.text)[0]:
        if part.name == "ending" and not_given:
            yield part.name, text.printed(values | {part.name: f"{CLIENT_REASON}another"})
        elif part.name not in WHERE:
            for other in others(part.name, values[part.name], part.choices):
                yield part.name, text.printed(values | {part.name: other})
    if name == "preparing":
        reason, said = values["reason"], grammar.said(name, message)
        own, given, client = reason.partition(CLIENT_REASON)
        known = grammar.reason(said["reason"])
        for part in parts_of(known.text)[0]:
            if part.name in known.values(own):
                for other in others(part.name, said[part.name], part.choices):
                    changed = known.printed({**known.values(own), part.name: other})
                    yield part.name, text.printed(values | {"reason": changed + given + client})
        if given:
            yield "client_reason", text.printed(values | {"reason": f"{own}{given}another"})
            if client not in NOT_GIVEN:
                yield "client_reason", text.printed(values | {"reason": own})


def lines(recording: Recording) -> Iterator[tuple[str, Sequence[Row], int]]:
    """Yield a line of each template, and of each reason: its group, and its place in the rows."""
    grammar, seen = recording.run.grammar, set()
    by_size = sorted(recording.rows_by_group.items(), key=lambda item: len(item[1]))
    for group, rows in by_size:
        for place, row in enumerate(rows):
            if row["template"] is None:
                continue
            says = grammar.said(row["template"], row["message"])
            of = row["template"], says.get("reason"), says.get("client_reason")
            if of not in seen:
                seen.add(of)
                yield group, rows, place


def altered(grammar: Grammar, row: Row, message: str) -> Row:
    """Return a line's row with another message."""
    says = grammar.template(row["template"]).values(message)
    number = lambda name: int(says[name]) if isinstance(row[name], int) else says[name]
    return {**row, "message": message, **{n: number(n) for n in COLUMNS if n in says}}


def test_a_lie_in_each_field_of_each_line_is_found_or_listed(recording):
    grammar, excused = recording.run.grammar, not_compared()
    found: dict[str, set[str]] = {}
    for group, rows, place in lines(recording):
        row = rows[place]
        for field, message in lies(grammar, row):
            assert message != row["message"]
            lie = [*rows[:place], altered(grammar, row, message), *rows[place + 1 :]]
            differs = any(
                table != "comparison" or one["outcome"] != "match"
                for table, one in compared(recording.context, group, lie)
            )
            name = row["template"]
            if differs:
                found.setdefault(name, set()).add(field)
            else:
                reason = grammar.said(name, message).get("reason", name)
                listed = excused.get(name, "") + excused.get(reason, "")
                assert f"`{field}`" in listed, f"{row['message']!r} -> {message!r}"
    for name, fields in ALWAYS_FOUND.items():
        assert fields <= found[name], name
    assert found["left"] & {"client_reason", "ending"}
    assert found["group_loaded"] & {"members", "generation"}
