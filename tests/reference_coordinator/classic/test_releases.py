"""Which rules a release gets: every change between Kafka 2.4.0 and 4.4, from both sides."""

from dataclasses import fields, replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import (
    CHANGES,
    JAVA,
    KIP_345,
    NEWEST,
    PROFILE_NAMES,
    PROFILES,
    PROMISES,
    RELEASE_LINES,
    SCALA,
    nearest_to,
    origin_of,
    profile_for,
    profile_named,
    promised_by,
)
from tests.reference_coordinator.classic.releases import PROFILES as NEWEST_TWO
from tests.reference_coordinator.classic.releases import SCALA_PROFILES, runs

RULES = {field.name for field in fields(Profile)} - {"name", "settings"}


@pytest.mark.parametrize(
    ("build", "name"),
    [
        ("2.4.0-scala", "2.4.0"), ("2.4.1-scala", "2.4.1"), ("2.5.1-scala", "2.5.1"),
        ("2.6.0-scala", "2.6.0"), ("2.6.3-scala", "2.6.1"), ("2.7.2-scala", "2.7"),
        ("2.8.0-scala", "2.8.0"), ("2.8.2-scala", "2.8.1"), ("3.2.3-scala", "3.2"),
        ("3.3.1-scala", "3.3.0"), ("3.3.2-scala", "3.3.2"), ("3.9.1-scala", "3.9-scala"),
        ("3.9.0-java", "3.9-java"), ("3.7.2-java", "3.7-java"), ("4.0.1-scala", "4.0-scala"),
        ("4.0.1-java", "4.0-java"), ("4.1.1-java", "4.1"), ("4.3.0-java", "4.3"),
        ("4.3-java", "4.3"), ("4.4.0-java", "4.4"),
    ],
)  # fmt: skip
def test_a_profile_is_found_by_release_and_coordinator(build, name):
    """Patch releases share one with their line, unless the line changed a rule within."""
    profile = profile_for(*build.split("-"))
    assert profile is not None
    assert profile.name == name
    assert profile_named(build) is profile_named(name) is profile


def test_other_releases_have_none():
    """The oracle does not guess."""
    none = ("4.4.0-scala", "3.6.2-java", "2.3.1-scala", "4.5.0-java", "43.0-java", "3.9.1.2-java",
            "3.9.1-rust", "-java")  # fmt: skip
    for name in none:
        assert profile_for(*name.split("-")) is None
        assert profile_named(name) is None
    for name in ("", "4.3.0-", "kip-999", "newest", "3.9.1-rc0"):
        assert profile_named(name) is None


def test_without_a_coordinator_a_release_runs_its_default():
    """Scala up to 3.9, Java from 4.0 on."""
    defaults = {"3.6.2": "3.6", "3.9.1": "3.9-scala", "4.0.0": "4.0-java", "4.4.0": "4.4"}
    assert {version: profile_named(version).name for version in defaults} == defaults


def test_the_nearest_rules_are_those_of_the_last_release_before():
    """What a build is offered whose version is no release."""
    nearest = {
        ("4.4.7", "java"): "4.4",
        ("4.5.0", "java"): "4.4",
        ("3.6.0", "java"): "3.7-java",
        ("4.3.0", "scala"): "4.0-scala",
        ("2.6.3", "scala"): "2.6.1",
    }
    assert {build: nearest_to(*build).name for build in nearest} == nearest


def test_the_first_release_of_a_profile():
    """Proposals are of no release."""
    assert origin_of(PROFILES["4.4"]) == ("4.4.0", "java")
    assert origin_of(PROFILES["2.6.1"]) == ("2.6.1", "scala")
    assert origin_of(PROFILES["3.9-java"]) == ("3.9.0", "java")
    assert origin_of(PROFILES["kip-345"]) is origin_of(PROFILES["kip-423"]) is None


def test_profiles_are_known_by_their_names():
    """Every profile bears the name it is found by, and no two have one."""
    assert list(PROFILE_NAMES) == [profile.name for profile in PROFILES.values()]
    assert {"4.4", "3.9-java", "3.9-scala", "kip-345", "kip-423"} <= set(PROFILE_NAMES)
    assert Profile("4.4") == NEWEST


def differences(before: Profile, after: Profile) -> set[str]:
    """Return the rules in which two profiles differ."""
    return {rule for rule in RULES if getattr(before, rule) != getattr(after, rule)}


CHANGED = {
    ("2.4.0", "2.4.1"): {"replaced_new_member_stays_new", "new_members_have_sessions"},
    ("2.4.1", "2.5.0"): {
        "new_members_have_sessions", "failures_are_answered_in_every_version",
        "return_makes_completing_group_rebalance", "describes_static_to_old_clients",
    },
    ("2.5.0", "2.5.1"): {"describes_static_to_old_clients"},
    ("2.5.1", "2.6.0"): {"last_to_rejoin_are_refused"},
    ("2.6.0", "2.6.1"): {
        "heartbeats_count_while_completing", "return_may_change_protocol", "return_is_stored",
        "store_answers_latest_return", "failed_replacement_restores_protocols",
    },
    ("2.6.1", "2.7"): set(),
    ("2.7", "2.8.0"): {"refused_instance_is_forgotten"},
    ("2.8.0", "2.8.1"): {"pending_sync_timer", "stale_sync_id_stops_timer"},
    ("2.8.1", "3.0"): {
        "stale_sync_id_stops_timer", "unknown_instance_is_refused", "pending_may_name_an_instance",
        "refused_pending_stays", "transaction_is_checked_as_a_whole",
        "empty_group_takes_any_commit",
    },
    ("3.0", "3.2"): set(),
    ("3.2", "3.3.0"): {"empty_group_takes_any_commit"},
    ("3.3.0", "3.3.2"): {"joins_update_timeouts"},
    ("3.3.2", "3.4"): set(),
    ("3.4", "4.0-scala"): set(),
    ("3.7-java", "3.8-java"): {"session_range_comes_first", "unload_answers_waiting"},
    ("3.8-java", "3.9-java"): set(),
    ("3.9-java", "4.0-java"): set(),
    ("4.0-java", "4.3"): set(),
    ("4.3", "4.4"): {"transaction_to_unknown_group_v6"},
    # what an upgrade to 4.0 changes for classic groups, though no rule of the protocol did
    ("3.9-scala", "3.9-java"): {
        "sync_while_loading", "session_range_comes_first", "unserved_join_keeps_member_id",
        "describes_assignments_in_every_state", "commit_to_unknown_group_v9",
        "transaction_creates_group", "oversized_commit", "stores_new_group", "write_timeout",
        "answers_wait_for_writes", "removed_pending_timer_runs_on",
        "refused_join_may_end_join_phase", "new_members_extend_every_initial_delay",
        "expiry_ends_initial_delay", "sync_in_stable_restarts_session",
        "replaced_new_member_stays_new", "leave_is_one_step", "overtaken_expiry_counts",
        "deleted_group_is_dead_first", "describes_committed_records", "store_answers_latest_return",
        "failed_replacement_restores_protocols",
    },
}  # fmt: skip
"""The table of changes, read once more from Kafka's history, release by release."""


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_what_a_release_changed(before, after):
    assert differences(PROFILES[before], PROFILES[after]) == CHANGED[before, after]


DEPARTURES = {
    "describes_latest_client",
    "instance_keeps_its_place",
    "replaced_id_stays_pending_sync",
    "sync_timer_spares_statics",
    "every_return_is_stored",
    "sessions_wait_for_clients",
    "changed_subscription_rebalances",
}
"""What KIP-345 promises beyond the newest release; departures of every release, so in no table."""


POLICIES = {
    "kip-423": "join_reason_counts", "pre-registration": "awaits_expected_instances",
    "hot-standby": "standbys_hold_no_partitions",
}  # fmt: skip
"""What no release has: the profile of each, and its rule."""


def test_what_the_proposals_promise_beyond_the_newest_release():
    assert differences(NEWEST, PROFILES["kip-345"]) == DEPARTURES
    for name, rule in POLICIES.items():
        assert differences(NEWEST, PROFILES[name]) == {rule}
    listed, own = {change.rule for change in (*SCALA, *JAVA)}, DEPARTURES | {*POLICIES.values()}
    assert listed.isdisjoint(own)
    assert listed | own == RULES


def test_what_kip_345_promises_of_an_old_release():
    """Its defects in the matter are gone; all else is as it is, other defects included."""
    promised = promised_by(PROFILES["2.4.1"])
    assert differences(promised, PROFILES["2.4.1"]) == DEPARTURES | {
        "joins_update_timeouts",
        "refused_instance_is_forgotten",
        "return_is_stored",
        "return_makes_completing_group_rebalance",
        "return_may_change_protocol",
        "unknown_instance_is_refused",
    }
    assert promised.settings == PROFILES["2.4.1"].settings
    assert profile_named("kip-345-2.4.1") == profile_named(promised.name) == promised
    assert profile_named("kip-345-3.9.1-java") == promised_by(PROFILES["3.9-java"])
    assert profile_named("kip-345-9.9") is None
    assert replace(promised_by(NEWEST), name="kip-345") == KIP_345
    assert set(PROMISES) <= RULES


def test_the_table_lists_each_change_once():
    """Each row changes something, is of a line that has its coordinator, and stands in order."""
    for coordinator, changes in CHANGES.items():
        last = replace(NEWEST)
        for change in changes:
            assert getattr(last, change.rule) != change.value, change
            last = replace(last, **{change.rule: change.value})
        releases = [tuple(map(int, change.release.split("."))) for change in changes]
        assert releases == sorted(releases)
        assert {f"{major}.{minor}" for major, minor, _ in releases} <= {*RELEASE_LINES[coordinator]}


def test_errors_of_writes_that_failed():
    """How clients hear of a log that took a record badly; Scala has two more words for it."""
    assert PROFILES["4.3"].failed_writes == {
        Error.UNKNOWN_SERVER_ERROR,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
    }
    assert PROFILES["3.9-scala"].failed_writes - PROFILES["4.3"].failed_writes == {
        Error.REBALANCE_IN_PROGRESS,
        Error.REQUEST_TIMED_OUT,
        Error.INVALID_COMMIT_OFFSET_SIZE,
    }


def test_settings_are_read_out_of_broker_properties():
    """Other properties of the broker do not change the rules."""
    settings = Settings.from_properties({"group.max.size": "7", "log.dirs": "/data"})
    profile = PROFILES["3.9-scala"].with_settings(settings)
    assert profile.settings == Settings(max_size=7)
    assert profile.with_settings(Settings()) == PROFILES["3.9-scala"]


def ran(rule, rows):
    """List the values of a rule that runs read, under settings of their own."""
    return [getattr(rules.with_settings(Settings()), rule) for rules, _ in runs(rows)]


def test_a_test_runs_once_under_each_set_of_the_rules_that_it_reads():
    """And once more where something else is expected of the same rules."""
    rows = [(profile, {}) for profile in NEWEST_TWO]
    assert ran("pending_sync_timer", rows) == [True]
    assert ran("leave_is_one_step", rows) == [False, True]
    assert len(ran("name", rows)) == len(rows)
    rows = [(profile, {"scala": profile in SCALA_PROFILES}) for profile in NEWEST_TWO]
    assert ran("pending_sync_timer", rows) == [True, True]
