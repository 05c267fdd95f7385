"""When lines were written, though the wall clock of their broker jumps."""

import pytest

from chaos.line_times import LineTimes

T = 1_795_261_540_000


def line(number: int, at_ms: int, off_ms: int = 0, booted_ms: int = 5_000) -> str:
    return f"{number} {T + at_ms + off_ms} {(at_ms + booted_ms) * 1_000_000} main INFO x (y)"


@pytest.mark.parametrize("by_ms", [3_000, -3_000, 500, -500])
def test_a_wall_clock_that_jumps_there_and_back_moves_no_line(by_ms: int) -> None:
    times = LineTimes()
    seen = [times.at_ms(line(n, 100 * n, by_ms * (20 <= n < 90))) for n in range(1, 100)]
    assert seen == [T + 100 * n for n in range(1, 100)]


def test_another_process_has_another_zero() -> None:
    times = LineTimes()
    assert times.at_ms(line(7, 100)) == T + 100
    assert times.at_ms(line(1, 900, booted_ms=77)) == T + 900
    assert times.at_ms(line(2, 950, 3_000, booted_ms=77)) == T + 950


def test_lines_may_stand_in_swapped_order() -> None:
    times = LineTimes()
    order = [*range(1, 40), 41, 42, 40, *range(43, 60)]
    seen = [times.at_ms(line(n, 100 * n, -3_000 * (n >= 30))) for n in order]
    assert seen == [T + 100 * n for n in order]


def test_a_process_whose_first_line_is_lost_is_another_one() -> None:
    times = LineTimes()
    for n in range(1, 200):
        times.at_ms(line(n, 100 * n))
    assert times.at_ms(line(2, 30_000, booted_ms=77)) == T + 30_000


def test_a_thread_that_was_suspended_between_its_clocks_sets_no_other_zero() -> None:
    times = LineTimes()
    late = f"1 {T} {(5_000 + 300) * 1_000_000} main INFO x (y)"
    assert times.at_ms(late) == T
    assert times.at_ms(line(2, 100)) == T + 100
    assert times.at_ms(line(3, 200, 3_000)) == T + 200


def test_a_line_without_a_monotonic_time_is_of_the_time_that_it_shows() -> None:
    times = LineTimes()
    assert times.at_ms("2026-09-21 14:13:20,250 main INFO x (y)") == 1_790_000_000_250
    with pytest.raises(ValueError, match="no line of a group"):
        times.at_ms("half a line")
