"""What wire scripts need is asked for when the experiment is read."""

import pytest

from tests.scenarios.conftest import SMALL, Load, Problems

FITS = "group.initial.rebalance.delay.ms: 500, group.min.session.timeout.ms: 1000"


def telling(scripts: str, config: str = FITS, brokers: int = 3) -> str:
    text = SMALL.replace("replication_factor: 3", "replication_factor: 1")
    text = text.replace("workload:\n", f"workload:\n  wire_scripts: [{scripts}]\n")
    return text.replace(
        "cluster: {brokers: 3, config: {", f"cluster: {{brokers: {brokers}, config: {{{config}, "
    )


@pytest.mark.parametrize(
    ("scripts", "config", "brokers", "lacks"),
    [
        ("fencing, full", FITS, 3, ["'full' needs group.max.size: 5"]),
        ("fencing", f"{FITS}, group.max.size: 4", 3, ["'fencing' needs group.max.size: 5 or more"]),
        ("mixed, forming", "group.min.session.timeout.ms: 1000", 3,
         ["'forming' needs group.initial.rebalance.delay.ms: 500"]),
        ("mixed", "group.initial.rebalance.delay.ms: 100", 3,
         ["'mixed' needs group.initial.rebalance.delay.ms: 500 or more",
          "'mixed' needs group.min.session.timeout.ms: 2000 or less"]),
        ("fencing, elsewhere", FITS, 1, ["'elsewhere' needs cluster.brokers: 2 or more"]),
        ("unstored", FITS, 1,
         ["'unstored' needs a fault broker.kill at the coordinator of unstored"]),
        ("given_up", FITS, 3,
         ["'given_up' needs a fault coordinator.move at the coordinator of given_up"]),
        ("leader_misses", FITS, 1,
         ["'leader_misses' needs a fault topic.add-partitions for a topic 'orders'"]),
    ],
)  # fmt: skip
def test_each_missing_requirement_is_one_line(
    problems: Problems, scripts: str, config: str, brokers: int, lacks: list[str]
) -> None:
    place = f"workload.wire_scripts.{scripts.count(',')}"
    lines = [line.partition(": ")[2] for line in problems(telling(scripts, config, brokers))]
    assert lines == [f"{place}: {lack}; add it, or leave the wire script out" for lack in lacks]


def test_a_release_that_a_script_gets_stuck_on(problems: Problems) -> None:
    text = telling("while_completing").replace("cluster: {", "cluster: {version: 2.4.1, ")
    [line] = problems(text)
    assert "'while_completing' needs Kafka 2.5.0 or later" in line


def test_an_experiment_may_speak_of_the_groups_of_its_scripts(
    load_text: Load, problems: Problems
) -> None:
    kill = "{fault: broker.kill, target: {coordinator-of: unstored}, at: 1s, down_for: 2s}"
    text = telling("unstored, fencing").replace("faults:\n", f"faults:\n  - {kill}\n")
    text += "  - {group: fencing, rebalances: 1}\n"
    assert load_text(text).expect[-1].phase is None
    [line] = problems(text.replace("{group: fencing, ", "{group: fencings, "))
    assert "there is no group 'fencings'; did you mean 'fencing'?" in line


def test_the_old_key_of_stored_runs_is_read(load_text: Load, problems: Problems) -> None:
    text = telling("fencing")
    old = text.replace("wire_scripts:", "stories:")
    assert load_text(old) == load_text(text)
    assert "  wire_scripts:\n  - fencing" in load_text(old).dump()
    [line] = problems(text.replace("  wire_scripts:", "  stories: [removal]\n  wire_scripts:"))
    assert "workload.stories: unknown key" in line
