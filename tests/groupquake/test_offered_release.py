"""Which release brokers are taken for, by what they offer."""

import pytest

from groupquake.offered_release import METADATA_LEVELS, Offered
from reference_coordinator.classic.releases import LATEST


@pytest.mark.parametrize(
    ("apis", "level", "words", "certain"),
    [
        ((3, 9), None, "3.9.0 or a later patch", True),
        ((4, 1), None, "4.1.0 or a later patch", True),
        ((4, 3), 30, "4.3.0 or a later patch", True),
        ((4, 3), 33, "4.4.0 or a later patch", True),
        ((4, 3), 31, "4.4.0 or a later patch", True),
        ((4, 3), 34, "4.4.0 or a later release", False),
        ((4, 3), None, "4.3.0 or a later release", False),
        ((2, 6), None, "2.6.0 or a later patch", False),
    ],
)
def test_what_brokers_are_taken_for(
    apis: tuple[int, int], level: int | None, words: str, certain: bool
) -> None:
    """KAFKA-10284 changed 2.6.1; of what may be newer than 4.4 nobody knows the rules."""
    found = Offered.by(apis, level)
    assert (found.words, found.is_certain) == (words, certain)


def test_the_newest_line_that_has_rules_has_a_level() -> None:
    assert f"{'.'.join(map(str, max(METADATA_LEVELS)))}.0" == LATEST
