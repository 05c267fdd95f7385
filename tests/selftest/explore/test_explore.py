"""`python -m selftest explore`: broken rules are found; releases break what is known."""

import json
from dataclasses import replace

import pytest

from reference_coordinator.classic.releases import NEWEST, PROFILES
from reference_coordinator.classic.step import Step, step
from selftest.broken_rules import MUTANTS
from selftest.explore import known
from selftest.explore.actions import after
from selftest.explore.canonical import canonical
from selftest.explore.invariants import INVARIANTS
from selftest.explore.known import explanation
from selftest.explore.scene import Action, Scene
from selftest.explore.scopes import Scope, scopes
from tests.groupquake.conftest import Command

DEPTH = 3
"""As deep as the mutants below need."""
NOT_FOUND = {
    # needs more actions than DEPTH
    "does_not_fence_syncs", "does_not_fence_leaves", "takes_commits_of_old_generations",
    "replaces_without_rebalance_while_completing", "does_not_tell_returning_leader",
    "rebalances_though_nobody_left",
    # only the time of a session is another, and no time that is set is wrong
    "commits_do_not_keep_alive", "syncs_do_not_keep_alive",
    # the scopes have no batch, no `group.max.size`, one share for all, no broker out of office
    "removes_the_first_alone", "has_no_max_size", "counts_one_too_many",
    "gives_everyone_the_leaders_share", "answers_when_not_coordinator",
    # what the coordinator does instead is allowed in some release or state
    "knows_no_instances", "does_not_extend_initial_delay",
}  # fmt: skip


def formed(profile: str = "4.3", coordinator: Step = step) -> list[Scope]:
    """Return the scopes of a group that is Stable."""
    return [s for s in scopes(PROFILES[profile], 2, 1, coordinator) if "Stable" in s.name]


@pytest.fixture(scope="module")
def broken_by_newest() -> set[str]:
    """Return what breaks by the rules as they are."""
    return {what for scope in formed() for what in scope.explore(DEPTH).broken}


@pytest.mark.parametrize("mutant", sorted(MUTANTS.keys() - NOT_FOUND))
def test_a_broken_rule_breaks_an_invariant(mutant: str, broken_by_newest: set[str]) -> None:
    explored = (scope.explore(DEPTH) for scope in formed(coordinator=MUTANTS[mutant]))
    assert any(found.broken.keys() - broken_by_newest for found in explored)


def test_the_mutants_that_are_not_found_exist() -> None:
    assert MUTANTS.keys() > NOT_FOUND


def test_the_rules_of_releases_break_only_what_is_explained() -> None:
    """Each release that breaks other invariants than the one before it, and the proposals."""
    for profile in ("2.4.0", "2.4.1", "2.5.0", "2.6.1", "2.8.1", "3.7-java", "4.4", "kip-345"):
        for scope in scopes(PROFILES[profile], 2, 1):
            for broken, course in scope.explore(2).broken.items():
                assert explanation(broken, course, scope), broken


@pytest.mark.parametrize(
    ("profile", "depth", "rule"),
    [
        ("4.3", 3, "sync_timer_spares_statics"),
        ("4.3", 3, "every_return_is_stored"),
        ("4.3", 2, "sessions_wait_for_clients"),
        ("2.4.0", 1, "return_is_stored"),
        ("2.8.0", 3, "pending_sync_timer"),
        ("3.7-java", 3, "unload_answers_waiting"),
        ("2.4.1", 3, "new_members_have_sessions"),
    ],
)
def test_the_known_defects_of_releases_are_found(profile: str, depth: int, rule: str) -> None:
    rules = {
        explanation(broken, course, scope)
        for scope in scopes(PROFILES[profile], 2, 1)
        for broken, course in scope.explore(depth).broken.items()
    }
    assert rule in rules


def test_a_promise_that_is_kept_is_not_broken() -> None:
    kept = replace(NEWEST, sessions_wait_for_clients=True, sync_timer_spares_statics=True)
    found = {what.partition(":")[0] for s in scopes(kept, 2, 1) for what in s.explore(3).broken}
    assert not found & {"session_served", "static_stays"}


def test_scenes_that_differ_in_names_and_times_are_one() -> None:
    joined = (Action("crash", 0), Action("join", 1))
    one, other, third = (
        course(*actions)
        for actions in (
            (*joined, Action("written")),
            (Action("beat", 2), *joined, Action("written")),
            joined,
        )
    )
    assert one.count != other.count
    assert canonical(one) == canonical(other)
    assert canonical(one) != canonical(third)


def course(*actions: Action) -> Scene:
    """Let actions happen in the first scope."""
    scene = formed()[0].start
    for action in actions:
        scene = after(scene, action)
    return scene


def test_what_is_explored_is_the_same_each_time() -> None:
    one, other = (formed()[1].explore(DEPTH) for _ in range(2))
    assert one == other
    assert one.states == 1 + sum(one.depths)
    assert one.left == one.depths[-1]


def test_no_invariant_is_left_out() -> None:
    """They are found by what the modules define: one that is wrapped or renamed could be lost."""
    names = """
        announced answered_at_last answered_once cause due generation_given_once generation_grows
        id_stays known_is_let_in leader_knows_all leave_is_true member_ends member_is_served
        one_leader one_mapping own_generation phase_ends phase_is_fair session_served share
        static_stays stored time_is_kept two_steps unknown_is_refused
    """
    assert sorted(INVARIANTS) == names.split()


def test_the_story_of_a_break_has_every_request_and_answer(command: Command) -> None:
    done = command("explore", "--depth", "3", "--json")
    assert done.code == 0, done.err
    (result,) = json.loads(done.out)
    (found,) = [b for b in result["breaks"] if b["explained_by"] == "sync_timer_spares_statics"]
    assert found["invariant"] == INVARIANTS["static_stays"]
    trace = "\n".join(found["trace"])
    assert "a sends JoinGroup (no member id, instance a)" in trace
    assert "b's JoinGroup is answered NONE, generation 2" in trace
    assert "the sync timer expires: PreparingRebalance (pending_sync)" in trace
    assert found["trace"][-1] == f"     ! {found['what']}"


def test_what_nothing_explains_fails(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "KNOWN", {})
    done = command("explore", "--depth", "2")
    assert (done.code, "Behind it: no rule" in done.out) == (1, True)


def test_time_that_runs_out_is_said_and_a_profile_that_does_not_exist(command: Command) -> None:
    done = command("explore", "--depth", "6", "--budget", "0.2")
    assert (done.code, done.out.count("time ran out")) == (2, 8)
    done = command("explore", "--profile", "9.9")
    assert (done.code, "there is no profile '9.9'" in done.err) == (64, True)
