"""Each form in which people hold logs: the lines read through it are those of the stock log."""

import random
from datetime import UTC, timedelta, timezone
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_protocol.coordinator_lines.parser import PREFIX
from reports.incident.lines.anchor import hinted
from reports.incident.lines.form import Form, recognised
from reports.incident.lines.reader import IRRELEVANT, Line, Reader, SplitSummary
from tests.reports.incident.incident_here import RECORDED, recorded, texts_of
from tests.reports.incident.lines.forms import FORMS

ZONES = [timezone(timedelta(minutes=minutes)) for minutes in (-570, -180, 0, 60, 345)]


@cache
def stock_log(name: str) -> list[str]:
    return [line for file, content in recorded(name).items() for line in texts_of(file, content)]


LOGS = sorted(folder.name for folder in RECORDED.iterdir())


@st.composite
def stock_logs(draw: st.DrawFn) -> list[str]:
    """Pieces of a broker's log, with at least one line of its coordinator."""
    log = stock_log(draw(st.sampled_from(LOGS)))
    at = draw(st.lists(st.integers(0, len(log) - 1), min_size=1, max_size=5))
    lines = [line for place in sorted(at) for line in log[place : place + 20]]
    return [draw(st.sampled_from([line for line in log[:500] if PREFIX.search(line)])), *lines]


def read(form: Form, texts: list[str], zone: timezone) -> tuple[list[Line], SplitSummary]:
    reader = Reader(form, zone)
    return [line for text in texts for line in reader.read(text).lines], reader.summary()


@pytest.mark.parametrize("kind", FORMS)
@given(stock_logs(), st.sampled_from(ZONES))
@settings(max_examples=8, deadline=None)
def test_lines_are_those_of_the_stock_log(kind: str, log: list[str], zone: timezone) -> None:
    of = FORMS[kind]
    texts = of.build(log, zone)
    form = recognised(texts)
    assert form.name == of.name
    assert form.resolution_ms == of.resolution_ms
    assert bool(form.zone) == of.tells_zone
    if kind == "JsonTemplateLayout":  # whose times are instants
        zone = UTC
    lines, seen = read(form, texts, UTC if of.tells_zone else zone)
    expected, stock = read(Form(), log, zone)
    step = lambda at_ms: at_ms // of.resolution_ms * of.resolution_ms
    assert [line._replace(source="") for line in lines] == [
        line._replace(at_ms=step(line.at_ms)) for line in expected
    ]
    assert (seen.statuses["used"], seen.statuses["rejected"]) == (stock.statuses["used"], 0)
    assert seen.brokers == stock.brokers
    assert (seen.first_ms, seen.last_ms) == (step(stock.first_ms), step(stock.last_ms))


def altered(text: str, chance: random.Random) -> str:
    """Return a text with something cut, doubled, put in or taken out."""
    at, to = sorted(chance.choices(range(len(text) + 1), k=2))
    return chance.choice([
        text[:at], text[at:], text[:at] + text[to:], text[:to] + text[at:],
        text[:at] + chance.choice('"{}[]()\\\0\x1b│|,:`*\ufeff\n\t0') + text[at:],
        text.replace(":", ""), text.replace(",", "."), text.swapcase(), text * 2, f'"{text}"',
    ])  # fmt: skip


def test_no_altered_line_of_a_coordinator_is_lost() -> None:
    chance = random.Random(29)
    lines = [line for name in LOGS for line in stock_log(name) if PREFIX.search(line)]
    for _ in range(10_000):
        built = FORMS[chance.choice([*FORMS])].build([chance.choice(lines)], UTC)
        text = "\n".join(built)
        for _ in range(chance.randint(1, 3)):
            text = altered(text, chance)
        form = recognised(built if chance.random() < 0.2 else [text])
        read = Reader(form, UTC).read(text)
        if PREFIX.search(text):
            assert hinted(text)
            assert read.status != IRRELEVANT, (form, text)
        assert bool(read.why) == (read.status == "rejected")
