"""Which release has which rules: the table behind the profiles, and how they are found by name.

Source: Kafka's source history, tag by tag. Rules that do not show on the wire are left
out, such as checks whether the coordinator runs: no socket is open while it does not.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from kafka_protocol.errors import Error
from kafka_protocol.releases import FIRST_JAVA_BY_DEFAULT, Release, number
from reference_coordinator.classic.profiles import Profile


class Change(NamedTuple):
    """From a release on, a rule has another value than before; "" where no issue stands behind it.

    What a coordinator's first release lists is where it differs from the newest.
    """

    release: str
    issue: str
    rule: str
    value: bool | Error


SCALA: tuple[Change, ...] = (
    # what tells the implementation apart, from its first release here to its last
    Change("2.4.0", "", "sync_while_loading", Error.REBALANCE_IN_PROGRESS),
    Change("2.4.0", "", "session_range_comes_first", False),
    Change("2.4.0", "", "unserved_join_keeps_member_id", True),
    Change("2.4.0", "", "describes_assignments_in_every_state", False),
    Change("2.4.0", "", "deleted_group_is_dead_first", True),
    Change("2.4.0", "", "describes_committed_records", False),
    Change("2.4.0", "", "commit_to_unknown_group_v9", Error.ILLEGAL_GENERATION),
    Change("2.4.0", "", "transaction_creates_group", True),
    Change("2.4.0", "", "transaction_to_unknown_group_v6", Error.ILLEGAL_GENERATION),
    Change("2.4.0", "", "oversized_commit", Error.INVALID_COMMIT_OFFSET_SIZE),
    Change("2.4.0", "", "stores_new_group", False),
    Change("2.4.0", "", "write_timeout", Error.REBALANCE_IN_PROGRESS),
    Change("2.4.0", "", "answers_wait_for_writes", False),
    Change("2.4.0", "", "removed_pending_timer_runs_on", True),
    Change("2.4.0", "", "refused_join_may_end_join_phase", True),
    Change("2.4.0", "", "new_members_extend_every_initial_delay", False),
    Change("2.4.0", "", "expiry_ends_initial_delay", False),
    Change("2.4.0", "", "sync_in_stable_restarts_session", True),
    Change("2.4.0", "", "leave_is_one_step", False),
    Change("2.4.0", "", "overtaken_expiry_counts", True),
    # what 2.4.0 had otherwise, each with the issue that mended it
    Change("2.4.0", "KAFKA-9801", "return_makes_completing_group_rebalance", False),
    Change("2.4.0", "KAFKA-9885", "last_to_rejoin_are_refused", False),
    Change("2.4.0", "KAFKA-10134", "heartbeats_count_while_completing", False),
    Change("2.4.0", "KAFKA-10284", "return_may_change_protocol", False),
    Change("2.4.0", "KAFKA-10284", "return_is_stored", False),
    Change("2.4.0", "", "refused_instance_is_forgotten", True),
    Change("2.4.0", "", "failures_are_answered_in_every_version", False),
    Change("2.4.0", "KAFKA-12890", "pending_sync_timer", False),
    Change("2.4.0", "", "unknown_instance_is_refused", False),
    Change("2.4.0", "", "pending_may_name_an_instance", False),
    Change("2.4.0", "", "refused_pending_stays", True),
    Change("2.4.0", "", "transaction_is_checked_as_a_whole", False),
    Change("2.4.0", "KAFKA-14009", "joins_update_timeouts", False),
    # what changed since
    Change("2.4.1", "KAFKA-9232", "replaced_new_member_stays_new", True),
    Change("2.4.1", "KAFKA-9232", "new_members_have_sessions", False),
    Change("2.5.0", "", "failures_are_answered_in_every_version", True),
    Change("2.5.0", "KAFKA-9752", "new_members_have_sessions", True),
    Change("2.5.0", "KAFKA-10239", "describes_static_to_old_clients", False),
    Change("2.5.0", "KAFKA-9801", "return_makes_completing_group_rebalance", True),
    Change("2.5.1", "KAFKA-10239", "describes_static_to_old_clients", True),
    Change("2.6.0", "KAFKA-9885", "last_to_rejoin_are_refused", True),
    Change("2.6.1", "KAFKA-10134", "heartbeats_count_while_completing", True),
    Change("2.6.1", "KAFKA-10284", "return_may_change_protocol", True),
    Change("2.6.1", "KAFKA-10284", "return_is_stored", True),
    Change("2.6.1", "KAFKA-10284", "store_answers_latest_return", True),
    Change("2.6.1", "KAFKA-10284", "failed_replacement_restores_protocols", False),
    Change("2.8.0", "", "refused_instance_is_forgotten", False),
    Change("2.8.1", "KAFKA-12890", "pending_sync_timer", True),
    Change("2.8.1", "KAFKA-12890", "stale_sync_id_stops_timer", True),
    Change("3.0.0", "KAFKA-12890", "stale_sync_id_stops_timer", False),
    Change("3.0.0", "", "unknown_instance_is_refused", True),
    Change("3.0.0", "", "pending_may_name_an_instance", True),
    Change("3.0.0", "", "refused_pending_stays", False),
    Change("3.0.0", "", "transaction_is_checked_as_a_whole", True),
    Change("3.0.0", "KAFKA-14201", "empty_group_takes_any_commit", False),
    Change("3.3.0", "KAFKA-14201", "empty_group_takes_any_commit", True),
    Change("3.3.2", "KAFKA-14009", "joins_update_timeouts", True),
)
"""`kafka.coordinator.group`: the default up to 3.9, gone in 4.1 (KAFKA-18329)."""

JAVA: tuple[Change, ...] = (
    Change("3.7.0", "KAFKA-16615", "session_range_comes_first", False),
    Change("3.7.0", "KAFKA-16148", "unload_answers_waiting", False),
    Change("3.7.0", "", "transaction_to_unknown_group_v6", Error.ILLEGAL_GENERATION),
    Change("3.8.0", "KAFKA-16615", "session_range_comes_first", True),
    Change("3.8.0", "KAFKA-16148", "unload_answers_waiting", True),
    Change("4.4.0", "", "transaction_to_unknown_group_v6", Error.GROUP_ID_NOT_FOUND),
)
"""`org.apache.kafka.coordinator.group`: optional from 3.7, the default from 4.0 on."""

CHANGES = {"scala": SCALA, "java": JAVA}
RELEASE_LINES = {
    "scala": [*(f"2.{n}" for n in range(4, 9)), *(f"3.{n}" for n in range(10)), "4.0"],
    "java": ["3.7", "3.8", "3.9", *(f"4.{n}" for n in range(5))],
}
"""Which release lines have which coordinator."""
LATEST = f"{RELEASE_LINES['java'][-1]}.0"
"""The first release of the newest line."""
BOTH = set(RELEASE_LINES["scala"]) & set(RELEASE_LINES["java"])


def _profiles(coordinator: str) -> dict[Release, Profile]:
    """Build a coordinator's profiles, by the first release that has each, in order of time."""
    changes, found = CHANGES[coordinator], {}
    for line in RELEASE_LINES[coordinator]:
        changing = {c.release for c in changes if c.release.startswith(f"{line}.")}
        releases = sorted({f"{line}.0", *changing}, key=number)
        for release in releases:
            name = line if len(releases) == 1 else release
            suffix = f"-{coordinator}" if line in BOTH else ""
            rules = {c.rule: c.value for c in changes if number(c.release) <= number(release)}
            found[number(release)] = replace(
                Profile(f"{name}{suffix}"),
                **rules,  # type: ignore[arg-type]
            )
    return found


_BY_RELEASE = {coordinator: _profiles(coordinator) for coordinator in RELEASE_LINES}

_PROMISE = "kip-345"

PROMISES = {
    # what no release keeps
    "describes_latest_client": True,
    "instance_keeps_its_place": True,
    "replaced_id_stays_pending_sync": False,
    "sync_timer_spares_statics": True,
    "every_return_is_stored": True,
    "sessions_wait_for_clients": True,
    "changed_subscription_rebalances": True,
    # what some releases do not keep: see the tables above
    "joins_update_timeouts": True,
    "refused_instance_is_forgotten": False,
    "return_is_stored": True,
    "return_makes_completing_group_rebalance": True,
    "return_may_change_protocol": True,
    "store_answers_latest_return": False,
    "unknown_instance_is_refused": True,
}
"""The rules of static membership, as KIP-345 promises them."""


def promised_by(profile: Profile) -> Profile:
    """Return the rules of a coordinator that is like this one and keeps what KIP-345 promises."""
    return replace(profile, name=f"{_PROMISE}-{profile.name}", **PROMISES)  # type: ignore[arg-type]


def with_one_broken(promised: Profile) -> dict[str, Profile]:
    """Return what keeps all promises but one, which is as in its release: by that one's name.

    Empty for the rules of a release, which promises nothing.
    """
    own = PROFILES.get(promised.name.removeprefix(_PROMISE).removeprefix("-"), NEWEST)
    names = PROMISES if promised.name.startswith(_PROMISE) else ()
    values = {name: getattr(own, name) for name in names}
    differ = {name: value for name, value in values.items() if getattr(promised, name) != value}
    return {name: replace(promised, **{name: value}) for name, value in differ.items()}


KIP_345 = replace(promised_by(Profile("newest")), name=_PROMISE)
"""What the proposal of static membership promises: the newest rules, without Kafka's departures."""

KIP_423 = Profile("kip-423", join_reason_counts=True)
"""The newest rules, and those of the proposal that joins give their reason."""

INSTANCE_FIRST = Profile("instance-first")
"""The newest rules: to give partitions by instance id is a matter of the leader alone."""

PRE_REGISTRATION = Profile("pre-registration", awaits_expected_instances=True)
"""The newest rules, and an operator that names the instance ids to come (KIP-345, future work)."""

HOT_STANDBY = Profile("hot-standby", standbys_hold_no_partitions=True)
"""The newest rules, and members beyond a group's target size (KIP-345, future work)."""

PROFILES = {
    profile.name: profile
    for profile in (
        *_BY_RELEASE["scala"].values(),
        *_BY_RELEASE["java"].values(),
        KIP_345,
        KIP_423,
        INSTANCE_FIRST,
        PRE_REGISTRATION,
        HOT_STANDBY,
    )
}
"""All of them by name, in order of time."""

PROFILE_NAMES = tuple(PROFILES)
NEWEST = PROFILES[RELEASE_LINES["java"][-1]]

_VERSION = r"(?P<version>(?P<line>\d+\.\d+)(\.\d+)?)"


def profile_for(version: str, coordinator: str) -> Profile | None:
    """Find the profile of a release such as `4.3.0` with its coordinator, `scala` or `java`.

    None where the oracle has none. A line such as `4.3` counts as its first release.
    """
    release = re.fullmatch(_VERSION, version)
    if release is None or release["line"] not in RELEASE_LINES.get(coordinator, ()):
        return None
    known = _BY_RELEASE[coordinator].items()
    return [profile for first, profile in known if first <= number(version)][-1]


def default_coordinator(version: str) -> str:
    """Return the coordinator that a release runs by default."""
    return "scala" if number(version) < FIRST_JAVA_BY_DEFAULT else "java"


def profile_named(name: str) -> Profile | None:
    """Find a profile by its name, or by a full release such as `4.3.0` or `3.9.1-scala`.

    Without a suffix, a release stands for the coordinator that it runs by default; with `kip-345-`
    before it, for what the proposal promises of that. None where the oracle has none.
    """
    if name in PROFILES:
        return PROFILES[name]
    if name.startswith(f"{_PROMISE}-"):
        base = profile_named(name.removeprefix(f"{_PROMISE}-"))
        return None if base is None else promised_by(base)
    release = re.fullmatch(rf"{_VERSION}(-(?P<coordinator>\w+))?", name)
    if release is None:
        return None
    version = release["version"]
    return profile_for(version, release["coordinator"] or default_coordinator(version))


def nearest_to(version: str, coordinator: str) -> Profile:
    """Return the rules of the last release before a version, or of the first if none is before."""
    known = _BY_RELEASE[coordinator]
    before = [profile for first, profile in known.items() if first <= number(version)]
    return before[-1] if before else next(iter(known.values()))


def origin_of(profile: Profile) -> tuple[str, str] | None:
    """Return the first release that has a profile, and its coordinator; None for a proposal's."""
    for coordinator, profiles in _BY_RELEASE.items():
        for first, known in profiles.items():
            if known is profile:
                return ".".join(map(str, first)), coordinator
    return None
