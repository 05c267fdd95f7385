"""Commits that failed, as members say in the client history: lines in; counts by error out."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from reports.judgement.run.history import Said

COMMIT = "commit: "
"""How a member begins the text of an error with which a commit failed (`loadtest.members`)."""
ERRORS, LENGTH = 20, 200
"""How many errors of a group are listed, and how much of the text of each: a program may word each
in its own way."""


class CommitError(msgspec.Struct, array_like=True):
    """How often commits failed by one error, and when first and last, in ms."""

    count: int
    first_ms: float
    last_ms: float


ByError = dict[str, dict[str, CommitError]]
"""By group and error."""


def note(found: ByError, said: "Said") -> None:
    """Count what a line of the history says, and those that it stands for."""
    if said.group is not None and said.error is not None and said.error.startswith(COMMIT):
        count = 1 + (said.left_out or 0)
        one = CommitError(count, said.at_ms, said.at_ms)
        merge(found, {said.group: {said.error.removeprefix(COMMIT)[:LENGTH]: one}})


def merge(found: ByError, more: ByError) -> None:
    """Add what another part of the history says."""
    for group, errors in more.items():
        mine = found.setdefault(group, {})
        for error, one in errors.items():
            had = mine.get(error, CommitError(0, one.first_ms, one.last_ms))
            mine[error] = CommitError(
                had.count + one.count,
                min(had.first_ms, one.first_ms),
                max(had.last_ms, one.last_ms),
            )


def listed(errors: Mapping[str, CommitError]) -> list[dict[str, Any]]:
    """Return the errors of a group as they stand in `verdict.json`, the most frequent first."""
    ordered: Iterable[tuple[str, CommitError]] = sorted(
        errors.items(), key=lambda one: (-one[1].count, one[0])
    )
    return [{"error": error, **msgspec.structs.asdict(one)} for error, one in [*ordered][:ERRORS]]
