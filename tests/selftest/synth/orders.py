"""Small orders of synthesized runs."""

from reference_coordinator.classic.releases import profile_for
from selftest.synth.mix import MIXES
from selftest.synth.order import Order


def order(mix: str, groups: int, megabytes: float, plant: int = 0, seed: int = 5) -> Order:
    profile = profile_for("4.3.0", "java")
    assert profile is not None
    return Order(groups, megabytes * 1e6, MIXES[mix], mix, seed, "4.3.0", profile, plant)
