"""The slope rule: a leak is found, noise is not."""

import random

import pytest

from selftest.soak.growth import BOUNDS, allowed, slope_of
from selftest.timing import HOUR_S, SAMPLED_EVERY_S

HALF_HOUR = range(0, 1_800, int(SAMPLED_EVERY_S))


def test_a_line_has_its_slope_and_no_error() -> None:
    found = slope_of([(at_s, 3.0 + 10.0 * at_s / HOUR_S) for at_s in HALF_HOUR])
    assert found is not None
    assert found.per_hour == pytest.approx(10.0)
    assert found.error == pytest.approx(0.0, abs=1e-6)
    assert found.is_flat(10.1)
    assert not found.is_flat(9.9)


def test_few_samples_have_no_slope() -> None:
    assert slope_of([]) is None
    assert slope_of([(float(at_s), 1.0) for at_s in range(4)]) is None


def noise(seed: int, sigma: float) -> list[float]:
    """Return values that stray as the memory of a process does: each is near the one before."""
    chance, value, values = random.Random(seed), 0.0, []
    for _ in HALF_HOUR:
        value += chance.gauss(0.0, sigma) - value / 20
        values.append(value)
    return values


@pytest.mark.parametrize("kind", BOUNDS)
def test_noise_is_no_leak_and_a_leak_shows_in_it(kind: str) -> None:
    """The noise has the size of what faults do: a member's sockets and threads come and go."""
    bound = allowed(kind, 1_800)
    sigma = bound / 6
    noisy, bare, leaking = [], [], []
    for seed in range(200):
        strays = noise(seed, sigma)
        rises = lambda per_hour, strays=strays: slope_of(
            [
                (at_s, 200.0 + stray + per_hour * at_s / HOUR_S)
                for at_s, stray in zip(HALF_HOUR, strays, strict=True)
            ]
        )
        flat, leak = rises(0.0), rises(5 * bound)
        assert flat is not None
        assert leak is not None
        noisy.append(not flat.is_flat(bound))
        bare.append(flat.per_hour >= bound)
        leaking.append(not leak.is_flat(bound))
    assert sum(noisy) == 0
    assert sum(bare) > 5, "without error bars noise would be taken for a leak"
    assert all(leaking)


def test_the_error_bars_hold_the_true_slope() -> None:
    """With independent noise they miss it in 5 % of cases: in 400, about 20, and less than 36."""
    chance, missed = random.Random(1), 0
    for _ in range(400):
        found = slope_of([(at_s, chance.gauss(0.0, 1.0)) for at_s in HALF_HOUR])
        assert found is not None
        missed += abs(found.per_hour) > found.error
    assert 6 < missed < 36


def test_a_step_is_not_taken_for_a_slope_with_small_error() -> None:
    """Memory that rises once, as a cache fills, has wide error bars."""
    found = slope_of([(at_s, 200.0 + 35.0 * (at_s > 900)) for at_s in HALF_HOUR])
    assert found is not None
    bound = allowed("memory MB", 1_800)
    assert found.per_hour > bound
    assert found.is_flat(bound)


def test_a_short_time_allows_for_what_fills_once() -> None:
    assert allowed("threads", 60) == allowed("threads", 3_600) == BOUNDS["threads"]
    assert allowed("memory MB", 3_600) == BOUNDS["memory MB"] + 20
    assert allowed("memory MB", 360) == BOUNDS["memory MB"] + 200
