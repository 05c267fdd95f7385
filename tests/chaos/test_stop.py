"""Stop: somebody has seen enough, and wants it judged."""

from tests.chaos.run import GOOD

ONE = "{fault: member.restart, target: {names: [static-3]}, at: 10ms, down_for: 150ms}"
LONG = "{fault: member.restart, target: {names: [static-3]}, at: 0s, down_for: 1m}"


def test_a_stop_after_the_last_fault_ends_the_waiting_and_nothing_else(run, load, experiment):
    outcome = run.meanwhile(
        experiment(ONE, impact="1m", recovery="1m"),
        lambda: run.path.exists() and run.entries("verified"),
        lambda: run.controller.stop(),  # noqa: PLW0108 (there is none before the run)
    )
    assert outcome == GOOD
    assert run.entries("verified")[0]["verified"] is True
    assert len(run.entries("stopped")) == 1
    assert run.entries("aborted") == []


def test_a_stop_heals_what_is_open_and_starts_nothing_new(run, load, experiment):
    later = ONE.replace("at: 10ms", "at: 1m").replace("static-3", "static-1")
    load.lost.add("static-3")  # so that nobody sees it come back before the wait is given up
    outcome = run.meanwhile(
        experiment(LONG, later),
        lambda: run.path.exists() and run.entries("injected"),
        lambda: run.controller.stop(),  # noqa: PLW0108 (there is none before the run)
    )
    assert outcome == GOOD
    assert load.ordered("stop") == load.ordered("start") == ["static-3"]
    assert run.entries("healed")[0]["healed"] is True
    assert run.entries("verified")[0]["verified"] is False
    assert [entry["phase"] for entry in run.entries("phase")] == ["impact"]
