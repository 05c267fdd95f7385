"""Which release brokers are taken for, by what they offer."""

from groupquake.external import METADATA_LEVELS, Offered
from reference_coordinator.classic.releases import LATEST

OFFERS = (
    ((3, 9), None, "3.9.0 or a later patch", True),
    ((4, 1), None, "4.1.0 or a later patch", True),
    ((4, 3), 30, "4.3.0 or a later patch", True),
    ((4, 3), 33, "4.4.0 or a later patch", True),
    ((4, 3), 31, "4.4.0 or a later patch", True),
    ((4, 3), 34, "4.4.0 or a later release", False),
    ((4, 3), None, "4.3.0 or a later release", False),
    ((2, 6), None, "2.6.0 or a later patch", False),
)
"""The line that APIs show, the highest `metadata.version`; what the brokers are taken for, and
whether their rules are certain. KAFKA-10284 changed 2.6.1; nobody knows the rules after 4.4."""


def test_what_brokers_are_taken_for() -> None:
    for apis, level, words, certain in OFFERS:
        found = Offered.by(apis, level)
        assert (found.words, found.is_certain) == (words, certain)
    assert f"{'.'.join(map(str, max(METADATA_LEVELS)))}.0" == LATEST
