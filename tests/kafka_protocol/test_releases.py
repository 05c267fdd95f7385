"""The release that the version of a build names."""

import pytest

from kafka_protocol.releases import release_in


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.4.0", "4.4.0"),
        ("4.4.0-acme.1", "4.4.0"),
        ("4.5.0-SNAPSHOT", "4.5.0"),
        ("3.9.1.redhat-00003", "3.9.1"),
        ("4.4-rc1", "4.4.0"),
        # Confluent Platform, whose numbers are its own
        ("8.0.0-ccs", "4.0.0"),
        ("7.9.1-ce", "3.9.1"),
        ("main", None),
        ("4", None),
    ],
)
def test_the_release_that_a_version_names(version: str, release: str | None) -> None:
    assert release_in(version) == release
