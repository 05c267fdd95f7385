"""Committed offsets: what OffsetCommits stored in; those that went back without cause, out.

A member goes on from the offset that was committed last, so the offsets of a partition that its
owners commit never go back. A commit of a partition that is not the member's is a cause, and so is
one of no member (an operator's); they are not judged, and those of members are counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach, breach

Json = dict[str, Any]
Stored = Sequence[tuple[str, int]]
"""Partitions, written `topic-number`, and their offsets."""

NOT_THEIRS = "commits_of_others_partitions"
"""Counts the partitions that members committed though they were not assigned to them."""


def stored(commit: ObservedRequest) -> tuple[list[tuple[str, int]], int]:
    """Return what an OffsetCommit stored, and the last error of its answer, or 0."""
    kept, error = [], 0
    for name, offset, code in partitions_of(commit):
        if code:
            error = code
        else:
            kept.append((name, offset))
    return kept, error


def partitions_of(commit: ObservedRequest) -> Iterator[tuple[str, int, int]]:
    """Yield the partitions that an OffsetCommit was answered about: offset and error."""
    errors: dict[str, int] = {}
    for topic in commit.response_fields.get("topics", ()):
        name = topic.get("name") or topic.get("topicId")
        for one in topic["partitions"]:
            errors[f"{name}-{one['partitionIndex']}"] = one["errorCode"]
    for topic in commit.request.get("topics", ()):
        name = topic.get("name") or topic.get("topicId")
        for one in topic["partitions"]:
            partition = f"{name}-{one['partitionIndex']}"
            code = errors.get(partition)
            if code is not None and "committedOffset" in one:
                yield partition, one["committedOffset"], code


class _Last(NamedTuple):
    """The offset of a partition that was committed last; the lowest one of overlapping commits."""

    offset: int
    commit: ObservedRequest


@dataclass(slots=True)
class Offsets:
    """The committed offsets of one group."""

    counts: Counter[str]
    _shares: dict[str, list[tuple[int, frozenset[str] | None]]] = field(default_factory=dict)
    _last: dict[str, _Last] = field(default_factory=dict)

    def assigned(self, sync: ObservedRequest, share: frozenset[str] | None) -> None:
        """Note which partitions a member has in a generation; None if that cannot be read."""
        of_member = self._shares.setdefault(sync.request["memberId"], [])
        of_member.append((sync.request["generationId"], share))
        del of_member[:-2]

    def committed(self, commit: ObservedRequest, kept: Stored) -> Iterator[Json]:
        """Take what a commit stored; yield its rows of `BREACHES`, without the group."""
        request = commit.request
        generation = request.get("generationIdOrMemberEpoch", request.get("generationId"))
        of_member = self._shares.get(request.get("memberId") or "", ())
        share = next((share for number, share in of_member if number == generation), None)
        back = []
        for name, offset in kept:
            lowest, last = offset, self._last.get(name)
            if share is None or name not in share:
                if share is not None:
                    self.counts[NOT_THEIRS] += 1
            elif last is not None:
                if commit.earliest_ms <= last.commit.answered_ms:
                    lowest = min(offset, last.offset)
                elif offset < last.offset:
                    back.append((name, offset, last))
            self._last[name] = _Last(lowest, commit)
        for name, offset, last in back[:1]:
            yield breach(
                Breach.OFFSET_WENT_BACK,
                commit.answered_ms,
                f"{name} goes on from offset {last.offset}, committed by request {last.commit.id}",
                f"{commit.client_id} committed offset {offset} of {name}"
                + (f", and {len(back) - 1} more that went back" if len(back) > 1 else ""),
                shown_by=commit,
            )
