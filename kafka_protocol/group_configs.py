"""Configs of a group, and how IncrementalAlterConfigs names them (KIP-339, KIP-848).

Those named here no release has: see `docs/never-shipped.md`.
"""

from collections.abc import Mapping
from typing import Any

GROUP = 32
"""The resource type of a group's configs (`ConfigResource.Type`, KIP-848)."""
EXPECTED = "group.instance.ids.expected"
TIMEOUT = "group.instance.ids.timeout.ms"
TARGET_SIZE = "target.group.size"
POLICIES = {EXPECTED: "pre-registration", TIMEOUT: "pre-registration", TARGET_SIZE: "hot-standby"}
"""Of each config the profile that has it."""

SET, DELETE = 0, 1
"""What is done to a config (`AlterConfigOp.OpType`); lists may also be added to and taken from."""
SETS = (SET, DELETE)


def changes(configs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what a request says of configs that are set, or with "" set back to their default."""
    return [
        {"name": name, "configOperation": SET if value else DELETE, "value": value or None}
        for name, value in configs.items()
    ]
