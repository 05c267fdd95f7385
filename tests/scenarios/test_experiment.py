import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scenarios import Experiment, MemberSpec, named
from scenarios.document import Document
from scenarios.faults.group import GroupBounce
from scenarios.model import LONG
from scenarios.targets import Names
from tests.scenarios.conftest import SMALL, Load, Problems


def test_units_and_shapes_in_python(load_text: Load) -> None:
    experiment = load_text(SMALL)
    group = experiment.workload.groups[0]
    assert (group.session_timeout_ms, group.heartbeat_interval_ms) == (10_000, 1_000)
    bounce, restart = experiment.faults
    assert isinstance(bounce, GroupBounce)
    assert (bounce.target, bounce.at_ms, bounce.down_for_ms, bounce.every_ms) == (
        "all", 1_000, 2_000, 5_000,
    )  # fmt: skip
    assert restart.target == Names(names=("teller-1",))
    assert (experiment.phases.impact_ms, experiment.phases.recovery_ms) == (20_000, 0)
    assert (experiment.expect[0].rebalances.min, experiment.expect[0].rebalances.max) == (0, 0)
    with pytest.raises(ValidationError, match="frozen"):
        experiment.faults[0].at_ms = 1


def test_whether_clients_count_is_said_once(load_text: Load, problems: Problems) -> None:
    assert load_text(SMALL).clients is None
    assert load_text(f"{SMALL}  - {{clients: shown}}\n").clients == "shown"
    [line] = problems(f"{SMALL}  - {{clients: shown}}\n  - {{clients: kept}}\n")
    assert "expect.2.clients: stands in expect.1 already; remove one of them" in line


def test_defaults(load_text: Load) -> None:
    lines = [line for line in SMALL.splitlines() if "_timeout" not in line]
    lines = [line for line in lines if "_interval" not in line and "cluster" not in line]
    experiment = load_text("\n".join(lines).replace("down_for: 2s", "down_for: 6s"))
    group = experiment.workload.groups[0]
    assert (experiment.cluster.brokers, experiment.cluster.version) == (3, "4.3.0")
    assert (experiment.judge, group.assignor) == ("release", "range")
    assert (group.session_timeout_ms, group.heartbeat_interval_ms) == (45_000, 3_000)
    assert (group.max_poll_interval_ms, group.commit_interval_ms) == (300_000, 5_000)
    assert experiment.steady_state.within_ms == 60_000


PROBES = """\
  probes:
    - {name: all in, probe: group.members, group: payments, tolerance: 2}
"""


def test_by_default_each_group_of_members_is_whole_and_stable_before_the_first_fault(
    load_text: Load,
) -> None:
    more = """\
    - name: audit
      topics: [orders]
      members: [{kind: dynamic, count: 1, client: {command: [./audit]}}]
  wire_scripts: [stale_sync]
"""
    experiment = load_text(SMALL.replace("steady_state:\n" + PROBES, more))
    expected = [
        ("payments", "group.members", "all"),
        ("payments", "group.state", "Stable"),
        ("audit", "group.members", "all"),
        ("audit", "group.state", "Stable"),
    ]
    found = [(probe.group, probe.probe, probe.tolerance) for probe in experiment.probes]
    assert found == expected
    assert load_text(experiment.dump()).probes == experiment.probes


@pytest.mark.parametrize(
    "listed",
    ["probes: []", "probes: [{name: x, probe: group.members, group: payments, tolerance: 1}]"],
)
def test_a_list_of_probes_is_all_that_must_hold(listed: str, load_text: Load) -> None:
    """Also in run folders of older versions, which always have the list."""
    experiment = load_text(SMALL.replace(PROBES, f"  {listed}\n"))
    assert experiment.probes == experiment.steady_state.probes
    assert load_text(experiment.dump()) == experiment


def test_members_are_named_by_id_or_by_group_and_number(load_text: Load) -> None:
    more = """\
        - {kind: dynamic, count: 1}
        - {kind: static, count: 1, instance_id: boss}
        - {kind: dynamic, count: 2}
steady_state:"""
    assert load_text(SMALL.replace("steady_state:", more)).members() == (
        MemberSpec("teller-0", "payments", "static", "teller-0"),
        MemberSpec("teller-1", "payments", "static", "teller-1"),
        MemberSpec("payments-dynamic-0", "payments", "dynamic", None),
        MemberSpec("boss", "payments", "static", "boss"),
        MemberSpec("payments-dynamic-1", "payments", "dynamic", None),
        MemberSpec("payments-dynamic-2", "payments", "dynamic", None),
    )


def test_the_shortest_timings_that_brokers_and_clients_take(load_text: Load) -> None:
    group = load_text(SMALL.replace("10s", "6s").replace("30s", "6s")).workload.groups[0]
    assert (group.session_timeout_ms, group.max_poll_interval_ms) == (6_000, 6_000)


def test_a_shorter_session_once_the_brokers_allow_it(load_text: Load) -> None:
    text = SMALL.replace("session_timeout: 10s", "session_timeout: 3s")
    text = text.replace("num.partitions: 6", "num.partitions: 6, group.min.session.timeout.ms: 500")
    assert load_text(text).workload.groups[0].session_timeout_ms == 3_000


def test_dumped_and_loaded_again(load_text: Load) -> None:
    experiment = load_text(SMALL)
    dumped = experiment.dump()
    assert load_text(dumped) == experiment
    assert load_text(dumped).dump() == dumped
    assert "session_timeout: 10s\n" in dumped
    assert "version: 4.3.0\n" in dumped  # resolved: defaults are in it
    assert "_ms" not in dumped
    assert "null" not in dumped


@given(
    st.dictionaries(
        st.from_regex("[a-z][a-z.]*", fullmatch=True).filter(lambda key: len(key) < 200),
        st.text() | st.integers(-LONG, LONG) | st.booleans(),
    ),
    st.text(),
    st.lists(st.text()),
)
def test_any_text_survives_dumping(
    config: dict[str, str | int | bool], description: str, tags: list[str]
) -> None:
    experiment = named("demo").model_copy(update={"description": description, "tags": tuple(tags)})
    cluster = experiment.cluster.model_copy(update={"config": config})
    experiment = experiment.model_copy(update={"cluster": cluster})
    assert Experiment.model_validate(Document(experiment.dump()).data) == experiment
