"""What the start form asks for, without any page."""

import pytest

import scenarios
from loadtest.errors import LoadtestError
from loadtest.options import AS_IT_SAYS
from loadtest.page.form import choose

EMPTY = {
    "experiment": "demo",
    "kafka": "",
    "coordinator": AS_IT_SAYS,
    "seed": "",
    "static_members": "",
    "dynamic_members": "",
    "session_timeout": "",
}


def chosen(*options, **values):
    return choose({**EMPTY, **values}, options)


def test_an_untouched_form_is_the_experiment_as_it_is():
    choice = chosen()
    assert choice.experiment == scenarios.named("demo")
    assert choice.arguments == ("demo",)
    assert choice.remark == ""


def test_the_form_passes_options_that_make_the_same_experiment():
    choice = chosen(
        "--set=phases.impact=30s", "--ports=9092", static_members="6", session_timeout="8s"
    )
    settings = [text.removeprefix("--set=") for text in choice.arguments if "--set=" in text]
    assert choice.arguments[:3] == ("demo", "--set=phases.impact=30s", "--ports=9092")
    assert scenarios.named("demo").override(settings) == choice.experiment
    assert {group.session_timeout_ms for group in choice.experiment.workload.groups} == {8_000}
    assert len(choice.experiment.members()) == 6 + 4


def test_release_coordinator_and_seed_go_by_their_own_options():
    choice = chosen(kafka="3.9.1", coordinator="java", seed="7")
    assert choice.arguments == ("demo", "--kafka=3.9.1", "--coordinator=java", "--seed=7")
    assert choice.experiment.cluster.version == "3.9.1"
    assert choice.experiment.coordinator == "java"


def test_another_number_of_members_leaves_only_what_it_may_not_change():
    choice = chosen(static_members="6", dynamic_members="2")
    assert [(e.group, e.rebalances.max) for e in choice.experiment.expect] == [("static", 0)]
    assert "left out" in choice.remark
    same = chosen(dynamic_members="4")
    assert same.experiment == scenarios.named("demo")
    assert same.remark == ""


def test_a_steady_state_follows_the_number_of_members(experiment_file):
    probe = "{name: in, probe: group.members, group: calm, tolerance: 2}"
    text = f"steady_state: {{probes: [{probe}]}}\n"
    experiment_file.write_text(experiment_file.read_text() + text)
    [probed] = chosen(experiment=str(experiment_file)).experiment.steady_state.probes
    assert probed.tolerance == 2
    changed = chosen(experiment=str(experiment_file), static_members="3")
    assert changed.experiment.steady_state.probes[0].tolerance == "all"


@pytest.mark.parametrize(
    ("values", "error_line"),
    [
        ({"experiment": "demmo"}, "the library has no experiment 'demmo'; did you mean 'demo'?"),
        ({"experiment": "leader-restart", "dynamic_members": "2"}, "leader-restart has none"),
        ({"static_members": "some"}, "static members: 'some' is no number of members"),
        ({"static_members": "0"}, "workload.groups.0.members.0.count: 0 is too small"),
        ({"session_timeout": "8"}, "workload.groups.0.session_timeout: 8 has no unit"),
        ({"kafka": "4.3"}, "cluster.version: '4.3' is not allowed; write a whole release"),
        (
            {"kafka": "9.9.9"},
            (
                "cluster.version: Kafka 9.9.9 is not supported; use 2.4-2.7, 2.8-3.2, 3.3-3.7, 3.8,"
                " 3.9 or 4.x"
            ),
        ),
        ({"coordinator": "scala"}, "Kafka 4.3.0 cannot be run with the scala group coordinator"),
        ({"seed": "-1"}, "seed: '-1' is not a whole number from 0 to 2147483648"),
    ],
)
def test_errors_use_the_labels_of_the_form(values, error_line):
    with pytest.raises(LoadtestError) as raised:
        chosen(**values)
    assert str(raised.value).startswith(error_line) or error_line in str(raised.value)
    assert "--set" not in str(raised.value)
