"""Settings, as the oracle reads them from a broker; and the profiles that a test runs under."""

from reference_coordinator.classic.profiles import Settings
from reference_coordinator.classic.releases import PROFILES
from tests.reference_coordinator.classic.releases import PROFILES as NEWEST_TWO
from tests.reference_coordinator.classic.releases import SCALA_PROFILES, runs


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
