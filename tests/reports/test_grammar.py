"""Lines that the recordings do not hold: a run meets them when a write fails."""

import re

import pytest

from reports.grammar import GRAMMARS

MANAGER = "kafka.coordinator.group.GroupMetadataManager"
SERVICE = "kafka.coordinator.group.GroupCoordinator"
JAVA = "org.apache.kafka.coordinator.group.GroupMetadataManager"
TIMED_OUT = "org.apache.kafka.common.errors.TimeoutException"

SAMPLES = [
    pytest.param(
        "scala",
        MANAGER,
        "Offset commit Map(AAAAAAAAAAAAAAAAAAAAAA:orders-0 -> OffsetAndMetadata(offset=37,"
        " leaderEpoch=Optional[0], metadata=, commitTimestamp=1795284610697, expireTimestamp=None))"
        " from group static, consumer static-0-cab3ef88-21d1-40f8-9fea-7b06ff534044 with generation"
        f" 1 failed when appending to log due to {TIMED_OUT}",
        "commit_failed",
        ("static", "static-0-cab3ef88-21d1-40f8-9fea-7b06ff534044", "1"),
        id="seen on 3.9.1 while the leader of another partition was down",
    ),
    # the others as Kafka's source has them (3.9)
    (
        "scala",
        MANAGER,
        f"Metadata from group g with generation 3 failed when appending to log due to {TIMED_OUT}",
        "metadata_failed",
        ("g", "3"),
    ),
    (
        "scala",
        MANAGER,
        "Appending metadata message for group g generation 3 failed due to unexpected error: x",
        "metadata_failed",
        ("g", "3"),
    ),
    (
        "scala",
        SERVICE,
        "Failed to write empty metadata for group g: The request timed out.",
        "empty_failed",
        ("g",),
    ),
    (
        "java",
        JAVA,
        "Failed to write empty metadata for group g: The request timed out.",
        "empty_failed",
        ("g",),
    ),
]


@pytest.mark.parametrize(("coordinator", "logger", "message", "name", "fields"), SAMPLES)
def test_a_failed_write_is_understood(
    coordinator: str, logger: str, message: str, name: str, fields: tuple[str, ...]
) -> None:
    told = [
        (template.name, match.groups())
        for template in GRAMMARS[coordinator].templates
        if logger in template.loggers and (match := re.match(template.regex, message))
    ]
    assert told == [(name, fields)]
