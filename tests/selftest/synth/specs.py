"""Small synthesized runs."""

from reference_coordinator.classic.releases import profile_for
from selftest.synth.spec import Spec


def spec(mix: str, groups: int, seconds: float, seed: int = 5) -> Spec:
    profile = profile_for("4.3.0", "java")
    assert profile is not None
    return Spec(groups, seconds, mix, seed, "4.3.0", profile)
