"""Kafka's releases: how they compare, and where logs and coordinators changed for every package.

The rules of the coordinators by release are data of `reference_coordinator.classic.releases`; the
lines they write, of `coordinator_lines`; how releases are run, of `chaos.clusters.releases`.
"""

import re

Release = tuple[int, int, int]
RELEASE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,2}")
"""How a release is written: what `number` takes."""


def number(version: str) -> Release:
    """Make a release such as `3.9.1` comparable; a line such as `3.9` counts as its first.

    Raises ValueError for what is no release.
    """
    major, minor, patch = (*map(int, version.split(".")), 0)[:3]
    return major, minor, patch


_CONFLUENT: dict[str, str] = {"7": "3", "8": "4"}
"""Confluent Platform 7.n and 8.n have Kafka 3.n and 4.n; its versions end with `-ccs` or `-ce`."""


def release_in(version: str) -> str | None:
    """Return the release that the version of a build names: `4.4.0` for `4.4.0-acme.2`.

    None where it does not begin with one.
    """
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(?!\d)", version)
    if found is None:
        return None
    major, minor, patch = found.groups(default="0")
    if re.search(r"-(ccs|ce)\b", version):
        major = _CONFLUENT.get(major, major)
    return f"{major}.{minor}.{patch}"


FIRST_JSON_REQUEST_LOG: Release = (2, 8, 0)
"""The request log is JSON and has the bytes of metadata and assignments (KAFKA-10525)."""
FIRST_WITHOUT_ZOOKEEPER: Release = (3, 3, 0)
"""Brokers keep their metadata in a quorum of their own (KRaft, KIP-833)."""
FIRST_JAVA_CLIENT_TOOL: Release = (2, 5, 0)
"""Kafka's VerifiableConsumer takes `--bootstrap-server`."""
FIRST_JAVA_BY_DEFAULT: Release = (4, 0, 0)
"""The Java group coordinator is the default (KIP-848)."""
OLD_JOIN_FAILS_BESIDE_STATICS: tuple[Release, Release] = ((2, 5, 0), (3, 3, 2))
"""From the first release to before the second, JoinGroup below v5 fails for the leader of static
members (KAFKA-14422)."""
