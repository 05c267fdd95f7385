"""Settings, as the oracle reads them from a broker's configuration."""

from reference_coordinator.classic.profiles import Settings
from reference_coordinator.classic.releases import PROFILES


def test_settings_are_read_out_of_broker_properties():
    """Other properties of the broker do not change the rules."""
    settings = Settings.from_properties({"group.max.size": "7", "log.dirs": "/data"})
    profile = PROFILES["3.9-scala"].with_settings(settings)
    assert profile.settings == Settings(max_size=7)
    assert profile.with_settings(Settings()) == PROFILES["3.9-scala"]
