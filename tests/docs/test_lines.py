"""Every template of a coordinator line, and each of its fields, is listed as compared or not."""

import re
from collections.abc import Iterator
from pathlib import Path

from kafka_protocol.coordinator_lines import OF_RUNS
from kafka_protocol.coordinator_lines.template import parts_of
from reports.judgement.coordinators import coordinator_epochs
from reports.judgement.timelines import member_lines, timeline
from reports.judgement.timelines.member_lines import BEGUN, FIELDS, FIELDS_BY_REASON, SUBJECTS

PAGE = (Path(__file__).parents[2] / "docs" / "lines.md").read_text("utf-8")
COMPARED, NOT_COMPARED = PAGE.split("## Compared")[1].split("## Not compared")
READ = {
    *timeline.STEPS,
    *timeline.HINTS,
    *FIELDS,
    *member_lines.FAILED,
    *coordinator_epochs.EPOCH_TEMPLATES,
    *(grammar.last_template for grammar in OF_RUNS),
}
"""The templates of the lines that the judgement reads."""
EVERY_LINE_HAS = {"group", "partition"}
TEXTS = sorted(
    {
        (item.name, item.text)
        for grammar in OF_RUNS
        for item in (*grammar.templates, *grammar.reasons)
    }
)
OF_ONE_KIND = re.compile(r"\((Java|Scala|reason|before [\d.]+ only)\)| about ")
"""A row about some lines of a template alone."""


def rows(part: str) -> Iterator[tuple[str, str]]:
    """Yield the first cell of each row of tables, and the others."""
    for row in part.splitlines():
        if row.startswith("| "):
            names, _, rest = row.removeprefix("| ").partition(" | ")
            yield names, rest


def fields(part: str, name: str, *, of_all: bool = False) -> set[str]:
    """Return what the rows about a template list; those `of_all` its lines alone."""
    mine = [
        rest
        for names, rest in rows(part)
        if f"`{name}`" in names and not (of_all and OF_ONE_KIND.search(names))
    ]
    return set(re.findall(r"`(\w+)`", " ".join(mine)))


OF_STEPS, OF_REASONS = COMPARED.split("| reason of `preparing`")


def test_each_field_of_a_line_is_listed_as_compared_or_not() -> None:
    for name, text in TEXTS:
        assert any(f"`{name}`" in names for names, _ in rows(PAGE)), name
        listed = fields(PAGE, name)
        assert {part.name for part in parts_of(text)[0]} - EVERY_LINE_HAS <= listed, name
        both = fields(OF_STEPS, name, of_all=True) & fields(NOT_COMPARED, name, of_all=True)
        assert not both, name


def test_the_lines_that_are_compared_are_those_that_are_read() -> None:
    listed = {name for cell, _ in rows(OF_STEPS) for name in re.findall(r"`(\w+)`", cell)}
    assert listed == READ


def test_the_fields_that_are_listed_are_those_that_a_template_declares() -> None:
    """The text of a field may be a part of another; who holds an instance is a doubt alone."""
    for name in FIELDS.keys() - {BEGUN}:
        declared = {
            *FIELDS[name].split(),
            SUBJECTS.get(name, "member"),
        } - {""}
        assert fields(OF_STEPS, name) - {"ending", "holder"} == declared, name


def test_the_fields_of_a_reason_are_those_that_it_declares() -> None:
    for reason in FIELDS_BY_REASON.keys() - {"over_capacity"}:
        (row,) = [rest for names, rest in rows(OF_REASONS) if f"`{reason}`" in names]
        declared = FIELDS_BY_REASON[reason].replace("removed", "member").split()
        assert set(re.findall(r"`(\w+)`", row)) == {*declared} - {"client_reason"}, reason
        assert ("client's own reason" in row) == ("client_reason" in declared), reason
