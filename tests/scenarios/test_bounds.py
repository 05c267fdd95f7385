"""Each number, list and plan has a largest size, and what is larger costs one line and no time."""

from collections.abc import Iterator
from typing import Any

import pytest

from chaos.plan import make_plan
from groupquake.nightly.suite import Suite
from scenarios import ScenarioError, json_schema, named
from scenarios.document import MOST_VALUES
from scenarios.fields import MOST, MOST_ITEMS
from tests.scenarios.conftest import SMALL, Load, Problems

BOUNCE = "{fault: group.bounce, target: all, group: payments, at: 1s, down_for: 2s, every: 5s}"
RESTART = "{fault: member.restart, target: {names: [teller-1]}, at: 1s, down_for: 2s}"


def unbounded(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, list):
        for i, inside in enumerate(node):
            yield from unbounded(inside, f"{path}/{i}")
    if not isinstance(node, dict):
        return
    for kind, bound in {"integer": "maximum", "number": "maximum", "array": "maxItems"}.items():
        if node.get("type") == kind and bound not in node:
            yield path
    open_ended = "patternProperties" in node or isinstance(node.get("additionalProperties"), dict)
    if open_ended and "maxProperties" not in node:
        yield path
    for key, inside in node.items():
        yield from unbounded(inside, f"{path}/{key}")


@pytest.mark.parametrize("schema", [json_schema(), Suite.model_json_schema()])
def test_no_number_and_no_list_of_a_file_is_without_bound(schema: dict[str, Any]) -> None:
    assert list(unbounded(schema, "")) == []


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("count: 2", "count: 1000000000", f"1000000000 is too large; write {MOST} or less"),
        ("partitions: 4", "partitions: 1000000000", "1000000000 is too large; write 10000 or less"),
        ("rate: 5", "rate: 1e9", "'1e9' is not a number; write one"),
        ("rate: 5", "rate: 1.0e+9", "1000000000.0 is too large; write 1000000 or less"),
        ("brokers: 3", "brokers: 3, heap_mb: 1000000000", "write 65536 or less"),
        ("partitions: 6", f"partitions: {2**63}", f"{2**63} is too large; write {2**63 - 1} or"),
        ("tolerance: 2", "tolerance: 1000000000", f"too large; write {MOST} or less"),
        ("rebalances: 0", "rebalances: 1000000000", f"too large; write {MOST} or less"),
        ("rebalances: 0", "rebalances: {max: 1000000000}", f"too large; write {MOST} or less"),
        ("impact: 20s", "impact: 99999999999999h", "'99999999999999h' is too long; write 596h or"),
        ("impact: 20s", "impact: 1e400h", "'1e400h' is not a duration"),
        ("count: 2", f"count: {'9' * 5000}", "has more than 100 digits"),
        ("count: 2", f"count: 0x{'f' * 50_000}", "has more than 100 digits"),
        ("count: 2", f"count: 1{':59' * 50_000}", "has more than 100 digits"),
        ("rate: 5", f"rate: 1{':59' * 50_000}.5", "has more than 100 digits"),
        ("{brokers: 3", f"{{version: 4.3.{'9' * 5000}, brokers: 3", "write a whole release"),
        ("topics: [orders]", f"topics: [{'orders,' * (MOST_ITEMS + 1)}]", "give 1000 or fewer"),
        ("phases:", f"tags: [{'x,' * 250_000}]\nphases:", f"more than {MOST_VALUES} values"),
    ],
)
def test_what_is_too_large(problems: Problems, good: str, bad: str, message: str) -> None:
    assert good in SMALL
    lines = problems(SMALL.replace(good, bad, 1))
    assert message in lines[0]
    assert len(lines) <= 21


@pytest.mark.parametrize(
    ("good", "bad", "count"),
    [
        ("phases:", f"tags: [{'1, ' * 50_000}]\nphases:", 50_000),
        ("topics: [orders]", f"topics: [{'order, ' * 1_000}]", 1_000),
        ("{names: [teller-1]}", f"{{names: [{'taller-1, ' * 40_000}]}}", 40_000),
        ("config: {", f"config: {{{', '.join(f'a{n}: []' for n in range(20_000))}, ", 20_000),
    ],
)
def test_twenty_problems_are_shown_and_the_others_counted(
    load_text: Load, good: str, bad: str, count: int
) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(SMALL.replace(good, bad, 1))
    *shown, last = str(caught.value).splitlines()
    assert len(shown) == 20
    assert last == f"and {count - 20:,} more"


def test_what_aliases_repeat_counts_each_time(problems: Problems) -> None:
    for bomb in (
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)),
        f"a: &a [*a, {'x, ' * 900}]\nb: [{'*a, ' * 900}]\n",
    ):
        [line] = problems(SMALL + bomb)
        assert f"more than {MOST_VALUES} values" in line


@pytest.mark.parametrize(
    ("fault", "changed", "steps"),
    [
        (RESTART, "at: 1s, every: 1ms", 2_145_600_000),
        (RESTART.replace("[teller-1]", "[teller-0, teller-1]"), "at: 1s, every: 1s, repeat: 50001",
         100_002),
        (BOUNCE.replace("every: 5s", "every: 5s, repeat: 50001"), "at: 1s", 100_002),
        ("{fault: group.remove-members, group: payments, at: 1s, instances: [a, b, c]}",
         "at: 1s, every: 1s, repeat: 50000", 150_000),
        ("{fault: broker.rolling-restart, at: 1s, every: 5s, repeat: 33334}", "at: 1s", 100_002),
        ("{fault: broker.restart, at: 1s, target: {brokers: [1, 2]}}",
         "at: 1s, every: 1s, repeat: 100000", 200_000),
    ],
)  # fmt: skip
def test_a_plan_that_is_too_long_is_refused_before_it_is_made(
    problems: Problems, fault: str, changed: str, steps: int
) -> None:
    text = SMALL.replace(BOUNCE, fault.replace("at: 1s", changed))
    [line] = problems(text.replace("impact: 20s", "impact: 596h"))
    name = fault.partition("fault: ")[2].partition(",")[0]
    total = steps + 1
    assert line.startswith(f"20: faults.0: {name} makes {steps} of {total} steps of the plan")
    assert f"{MOST} is the most; let it fire less often" in line


def test_the_longest_plan_and_the_most_members(load_text: Load, problems: Problems) -> None:
    one = SMALL.replace(f"  - {BOUNCE}\n", "")
    longest = load_text(one.replace("at: 1s,", f"at: 1s, every: 1ms, repeat: {MOST},"))
    assert len(make_plan(longest, 0).steps) == MOST
    most = load_text(
        one.replace("count: 2", f"count: {MOST}").replace("tolerance: 2", "tolerance: all")
    )
    assert len(most.members()) == MOST
    assert make_plan(most, 0).steps
    more = SMALL.replace("members:\n", f"members:\n        - {{kind: dynamic, count: {MOST}}}\n")
    assert problems(more) == [f"8: workload.groups: have {MOST + 2} members; {MOST} is the most"]


def test_a_setting_that_is_too_large(load_text: Load) -> None:
    with pytest.raises(
        ScenarioError, match=f"--set .*: 9+\\.\\.\\. is too large; write {MOST} or less"
    ):
        load_text(SMALL).override([f"workload.groups.0.members.0.count={'9' * 90}"])
    with pytest.raises(ScenarioError, match=f"more than {MOST_VALUES} values"):
        load_text(SMALL).override([f"tags=[{'x,' * 200_000}]"])


def test_experiments_stay_equal_when_members_were_asked_for() -> None:
    asked = named("demo")
    assert [spec.name for spec in asked.members()] == list(asked.member_called)
    assert asked == named("demo")
