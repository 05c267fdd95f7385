"""Facts of Kafka stand in `kafka_protocol` alone: no second error code, threshold or log line."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_protocol.apis import COORDINATOR_APIS, GROUP_APIS
from kafka_protocol.coordinator_lines import ALL_GRAMMARS
from kafka_protocol.coordinator_lines.template import parts_of
from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED, LOGGER

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "benchmarks", "chaos", "groupquake", "loadtest", "reference_coordinator", "reports",
    "scenarios",
)  # fmt: skip
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

CODES = {int(error) for error in Error if error > 0}
NAMES_ERROR = re.compile(
    r"(?i:error_?codes?|\berror\b)|" + "|".join(rf"\b{e.name}\b" for e in Error if e > 0)
)
TOPIC = "__consumer_offsets"
LEAST_WORDS = 16
"""How much of a line's fixed text is a copy of it."""
Finder = Callable[[ast.AST], Iterator[ast.AST]]


def constants(node: ast.AST) -> Iterator[ast.Constant]:
    """The numbers of an expression that stand for themselves, not as an index or argument."""
    match node:
        case ast.Constant(value=int()):
            yield node
        case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from constants(part)
        case ast.IfExp(body=one, orelse=other):
            yield from constants(one)
            yield from constants(other)


def codes(node: ast.AST) -> Iterator[ast.AST]:
    """Numbers that are Kafka's error codes, beside the name of one or of a field that holds one."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    match node:
        case ast.keyword(arg=str(name), value=value):
            pairs = [(ast.Name(name), value)]
        case ast.Dict(keys=keys, values=values):
            pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key]
        case ast.Compare(left=left, comparators=others):
            pairs = [(node, side) for side in (left, *others)]
        case ast.Assign(targets=[target], value=value):
            pairs = [(target, value)]
    for named, value in pairs:
        numbers = [number for number in constants(value) if number.value in CODES]
        if numbers and NAMES_ERROR.search(ast.unparse(named)):
            yield from numbers


def codes_in_text(node: ast.AST) -> Iterator[ast.AST]:
    """Error codes in texts that are searched for."""
    match node:
        case ast.Constant(value=str(text)) if re.search(r"errorCode\W{1,3}[1-9]", text):
            yield node


def thresholds(node: ast.AST) -> Iterator[ast.AST]:
    """Versions of APIs, compared or listed by number."""
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            numbers = [number for side in sides for number in constants(side) if number.value]
            if numbers and re.search(r"(?<![a-z])versions?\b", ast.unparse(node)):
                yield from numbers
        case ast.Assign(targets=[target], value=value):
            if re.search(r"FIRST\w*_(VERSION|WITH|JOIN|SYNC|LEAVE)\b", ast.unparse(target)):
                yield from constants(value)
        case ast.Dict(keys=keys, values=values):
            names = [key.value for key in keys if isinstance(key, ast.Constant)]
            if len(set(names) & set(COORDINATOR_APIS)) > 1:
                yield from (number for value in values for number in constants(value))


def api_lists(node: ast.AST) -> Iterator[ast.AST]:
    """Lists of all the requests of members."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            if {part.value for part in parts if isinstance(part, ast.Constant)} >= set(GROUP_APIS):
                yield node


def _fixed_texts() -> Iterator[str]:
    yield from (COMPLETED, LOGGER, "is now empty")
    for grammar in ALL_GRAMMARS:
        for line in (*grammar.templates, *grammar.reasons):
            parts, end = parts_of(line.text)
            texts = (text.strip() for text in (*(part.before for part in parts), end))
            yield from (text for text in texts if len(text.replace(TOPIC, "")) >= LEAST_WORDS)


FIXED_TEXTS = tuple(dict.fromkeys(_fixed_texts()))
SHORTEST = min(map(len, FIXED_TEXTS))


def lines(node: ast.AST) -> Iterator[ast.AST]:
    """Texts that hold a part of a coordinator's or the request log's lines."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value.replace("\\", "")
        if len(text) >= SHORTEST and any(fixed in text for fixed in FIXED_TEXTS):
            yield node


def lines_in_patterns(node: ast.AST) -> Iterator[ast.AST]:
    """Regular expressions that read such lines."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
            for part in ast.walk(pattern):
                yield from lines(part)


def found(finders: tuple[Finder, ...], source: str) -> list[int]:
    """The lines with what a finder finds, except in docstrings."""
    tree = ast.parse(source)
    docs = {
        statement.value
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }
    return sorted(
        {
            place.lineno  # type: ignore[attr-defined]
            for node in ast.walk(tree)
            if node not in docs
            for finder in finders
            for place in finder(node)
        }
    )


def copies(paths: list[Path], *finders: Finder) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number in found(finders, path.read_text())
    ]


def test_facts_go_by_their_names_and_templates() -> None:
    """Error codes, versions, lists of APIs; log lines are read and printed by their templates."""
    assert copies(SOURCES, codes, codes_in_text, thresholds, api_lists, lines) == []
    assert copies(TESTS, codes, lines_in_patterns) == []


@pytest.mark.parametrize(
    ("finder", "copy"),
    [
        (codes, 'wrong = body.get("errorCode") == 27'),
        (codes, "if error_code in (22, 25): pass"),
        (codes, "UNKNOWN_MEMBER_ID = 25"),
        (codes, "NONE, FENCED_INSTANCE_ID = 0, 82"),
        (codes, "answer(error=16)"),
        (codes, 'answer({"errorCode": 79})'),
        (codes_in_text, """FENCED = re.compile(r'"errorCode":82[,}]')"""),
        (thresholds, "if event.api_version >= 4: pass"),
        (thresholds, "if versions[api][1] < 9: pass"),
        (thresholds, "FIRST_TWO_STEP_JOIN = 4"),
        (thresholds, "LAST = {'JOIN_GROUP': 5, 'SYNC_GROUP': 3}"),
        (
            api_lists,
            "A = ('JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT', 'LEAVE_GROUP', 'OFFSET_COMMIT')",
        ),
        (lines, "BEGUN = re.compile(r'Preparing to rebalance group (.+) in state')"),
        (lines, "text = f'Stabilized group {group} generation 3 with 2 members.'"),
        (lines, "if 'Completed request:' in line: pass"),
        (lines_in_patterns, r"re.search(r'Group (\S+) has failed, removing it from the group', x)"),
    ],
)
def test_a_copy_is_found(finder: Finder, copy: str) -> None:
    assert found((finder,), copy) == [1]


def test_a_similar_text_is_not_a_copy() -> None:
    source = """
if body['errorCode'] == Error.NONE or count == 27: pass
if event.api_version >= FIRST_TWO_STEP_JOIN: pass
"Preparing to rebalance group: what errorCode 27 and version >= 4 mean"
"""
    assert found((codes, codes_in_text, thresholds, api_lists, lines), source) == []
