"""Templates of coordinator lines: what is printed is parsed, and what brokers wrote is printed."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_protocol.coordinator_lines import (
    ALL_GRAMMARS,
    GRAMMARS,
    JAVA,
    OF_COORDINATORS,
    SCALA,
    Grammar,
    LineParser,
    Reason,
    Template,
    finder_of,
    grammar_of,
)
from kafka_protocol.coordinator_lines.parser import AnyRelease
from kafka_protocol.coordinator_lines.template import KINDS, Part, parts_of, printed
from kafka_protocol.log_line import EVENT
from tests.kafka_protocol.recorded import RECORDED, lines_in

NAMES = st.text("abz019-_.é", min_size=1, max_size=12)
BY_KIND = {
    "text": NAMES,
    "shortest": NAMES,
    "any": st.text("abz-_.,;()[]é ", max_size=20),
    "count": st.integers(0, 2**31).map(str),
    "int": st.integers(-1, 2**31).map(str),
    "word": st.sampled_from(("Stable", "PreparingRebalance", "Empty")),
    "dashed": st.sampled_from(("heartbeat", "offset-commit")),
    "cause": NAMES,
}
STRATEGIES = {KINDS[kind]: values for kind, values in BY_KIND.items()}


ANY = {name: AnyRelease(grammars) for name, grammars in OF_COORDINATORS.items()}
NEWEST = {template.text: template.name for one in ALL_GRAMMARS[::-1] for template in one.templates}
"""The names of lines, those that the newest grammar gives them."""
PARSERS = [LineParser(grammar) for grammar in ALL_GRAMMARS]


def parser_of(grammar: Grammar) -> LineParser:
    return next(p for p, g in zip(PARSERS, ALL_GRAMMARS, strict=True) if g is grammar)


def drawn(text: str) -> st.SearchStrategy[dict[str, str]]:
    """Draw values for the parts of a text, which have names of their own."""
    parts, _ = parts_of(text)
    names = [part.name for part in parts]
    assert len(names) == len(set(names))
    return st.fixed_dictionaries({part.name: value_of(part) for part in parts})


def value_of(part: Part) -> st.SearchStrategy[str]:
    if part.choices:
        return st.sampled_from(part.choices).map(lambda choice: choice.replace("…", "abc 1"))
    return STRATEGIES[part.pattern]


def check_all(text: str, examples: int, check: Callable[[dict[str, str]], None]) -> None:
    """Check examples of the values that a text may have."""

    @settings(max_examples=examples)
    @given(drawn(text))
    def each(values: dict[str, str]) -> None:
        check(values)

    each()


def check_line(grammar: Grammar, template: Template, values: dict[str, str]) -> None:
    message = template.printed(values)
    prefix = grammar.printed_prefix.format(broker=7, partition=3)
    for logger in template.loggers:
        line = parser_of(grammar).parsed("7", logger, prefix + message)
        assert line.template == template.name
        assert line.fields == {name: values[name] for name in template.fields}
        assert line.message == message
        assert line.partition == ("3" if grammar.coordinator == "java" else "")
    known = ANY[grammar.coordinator].parsed(prefix + message)
    assert (known.broker, known.message) == ("7", message)
    assert known.template == NEWEST[template.text]
    for name in set(template.fields) - {"reason"}:
        assert known.fields[name] == values[name]


def check_reason(reason: Reason, values: dict[str, str]) -> None:
    match = re.match(reason.regex, reason.printed(values))
    assert match is not None
    parts, _ = parts_of(reason.text)
    assert match[1] == next(values[part.name] for part in parts if part.reported)


@pytest.mark.parametrize("grammar", ALL_GRAMMARS, ids=range(len(ALL_GRAMMARS)))
def test_what_is_printed_is_parsed(grammar: Grammar) -> None:
    before = ALL_GRAMMARS[: ALL_GRAMMARS.index(grammar)]
    for template in grammar.templates:
        assert grammar.template(template.name) is template
        known = any(template in one.templates for one in before)
        check_all(template.text, 2 if known else 15, partial(check_line, grammar, template))
    for reason in grammar.reasons:
        check_all(reason.text, 15, partial(check_reason, reason))


def messages(folder: str) -> Iterator[tuple[Grammar, str, str, str]]:
    environment = json.loads((RECORDED / folder / "environment.json").read_text())
    grammar = grammar_of(environment["kafka_version"], environment["coordinator"])
    for broker, line in lines_in(folder):
        event = re.search(EVENT, line)
        assert event is not None
        if event[3].startswith(grammar.loggers):
            yield grammar, broker, event[3], event[2]


RECORDINGS = [
    "kafka-4.3.0", "kafka-3.9.1-java", "kafka-3.9.1-scala",
    *(f"before-2.8/{run.name}" for run in sorted((RECORDED / "before-2.8").iterdir())),
]  # fmt: skip


@pytest.mark.parametrize("folder", RECORDINGS)
def test_every_line_that_a_broker_wrote_is_printed_again(folder: str) -> None:
    count = 0
    for grammar, broker, logger, body in messages(folder):
        parsed = parser_of(grammar).parsed(broker, logger, body)
        if parsed.template is None:
            assert logger in grammar.irrelevant_loggers
            continue
        template = grammar.template(parsed.template)
        match = re.fullmatch(all_named(template.text), parsed.message, re.ASCII)
        assert match is not None
        assert template.printed(match.groupdict()) == parsed.message
        count += 1
    assert count > 20


def all_named(text: str) -> str:
    parts, end = parts_of(text)
    named = (f"{re.escape(part.before)}(?P<{part.name}>{part.pattern})" for part in parts)
    return "".join(named) + re.escape(end)


def test_a_groups_line_is_printed_with_its_prefix() -> None:
    values = {"group": "g", "generation": 2, "partition": 4}
    assert JAVA.printed("empty", 1, values) == (
        "[GroupCoordinator id=1 topic=__consumer_offsets partition=4] "
        "Group g with generation 2 is now empty."
    )
    assert SCALA.printed("empty", 1, values) == (
        "[GroupCoordinator 1]: Group g with generation 2 is now empty (__consumer_offsets-4)"
    )


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        ("a {x} b", {"x": "1 2"}, "a 1 2 b"),
        ("{n:count}.", {"n": 3}, "3."),
        ("Set({*h:|Hash}{x:any})", {"x": ""}, "Set()"),
        ("it {*end:ended|broke: …}", {}, "it ended"),
        ("it {*end:ended|broke: …}", {"end": "broke: down"}, "it broke: down"),
    ],
)
def test_printing(text: str, values: dict[str, object], line: str) -> None:
    assert printed(text, values) == line


@pytest.mark.parametrize(
    ("text", "values", "error"),
    [
        ("a {x} b", {}, KeyError),
        ("a {x} b", {"x": ""}, ValueError),
        ("{n:count}", {"n": -1}, ValueError),
        ("{s:word}", {"s": "a b"}, ValueError),
        ("{*end:ended|broke}", {"end": "went"}, ValueError),
        ("{*end:broke: …|ended}", {}, KeyError),
    ],
)
def test_values_that_cannot_be_printed(
    text: str, values: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        printed(text, values)


@pytest.mark.parametrize("grammar", ALL_GRAMMARS)
def test_the_last_words_are_the_last_template(grammar: Grammar) -> None:
    message = grammar.template(grammar.last_template).printed({})
    assert f"{message} (" in grammar.last_line_end
    assert grammar.last_line_end.rpartition("(")[2][:-1] in grammar.template("shut_down").loggers
    assert grammar.template("starting").printed({}) in grammar.first_line_end


@pytest.mark.parametrize("grammar", GRAMMARS.values())
def test_lines_are_found_in_logs_of_any_release(grammar: Grammar) -> None:
    empty = finder_of("empty")
    logger = grammar.template("empty").loggers[0]
    body = grammar.printed("empty", 1, {"group": "my group", "generation": 2, "partition": 4})
    line = f"17 1795263079202 20270 thread-1 INFO {body} ({logger})"
    found = empty.find(line)
    assert found is not None
    assert found[0] == "empty"
    assert found[1]["group"] == "my group"
    assert found[1]["generation"] == "2"
    # a killed broker leaves half a line, and its successor goes on behind it
    assert empty.find(line[:70] + line) == found
    assert empty.find(line[:-9]) is None
    assert empty.find(line.replace("is now", "was")) is None
    assert finder_of("stabilized").find(line) is None


def test_no_template_no_finder() -> None:
    with pytest.raises(KeyError, match="full"):
        finder_of("full")
    with pytest.raises(KeyError, match="boredom"):
        JAVA.reason("boredom")
