"""Committed offsets: what OffsetCommits stored in; those that went back without cause, out.

A member goes on from the offset that was committed last, so the offsets of a partition that its
owners commit never go back. A commit of a partition that is not the member's is a cause, and so is
one of no member (an operator's); they are not judged, and those of members are counted. A commit
that is sent again after a refusal may come after a later one, and one that waited in a connection
that its client had given up is acted on after one that the client sent later, on a new connection.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_protocol.bodies import generation_in, partitions_in
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import AboutClient, Breach, breach
from reports.judgement.run.deleted_topics import Deletions, of_partition

Json = dict[str, Any]
Stored = Sequence[tuple[str, int]]
"""Partitions, written `topic-number`, and their offsets."""

NOT_THEIRS = "commits_of_others_partitions"
"""Counts the partitions that members committed though they were not assigned to them."""
AGAIN = (
    Error.REQUEST_TIMED_OUT,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)
"""The errors after which clients send a commit again: librdkafka's OffsetCommit handler, Java's."""
GENERATIONS = 3
"""How many generations are known of which commits may come in: requests may overlap."""
REFUSED = 4
"""How many refused offsets of a partition are kept."""


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
    answered = partitions_in(commit.response_fields.get("topics", ()))
    errors = {name: one["errorCode"] for name, one in answered}
    for name, one in partitions_in(commit.request.get("topics", ())):
        code = errors.get(name)
        if code is not None and "committedOffset" in one:
            yield name, one["committedOffset"], code


class _Last(NamedTuple):
    """The offset of a partition that was committed last; the lowest one of overlapping commits."""

    offset: int
    commit: ObservedRequest


@dataclass(slots=True)
class Offsets:
    """The committed offsets of one group."""

    counts: Counter[str]
    goes_on: Callable[[str], bool] = lambda _: True
    """Whether a client's correlation ids go on over its connections."""
    deleted: Deletions = field(default_factory=dict)
    """The topics that faults delete: their offsets begin anew."""
    _shares: dict[int | None, dict[str, dict[str, frozenset[str] | None]]] = field(
        default_factory=dict
    )
    """By generation, and by instance or dynamic member: its member id, and its partitions."""
    _last: dict[str, _Last] = field(default_factory=dict)
    _refused: dict[str, deque[int]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=REFUSED))
    )
    """By partition: the offsets of commits that may come again."""

    def assigned(self, sync: ObservedRequest, share: frozenset[str] | None) -> None:
        """Note which partitions a member has in a generation; None if that cannot be read."""
        request = sync.request
        if request["generationId"] not in self._shares and len(self._shares) == GENERATIONS:
            del self._shares[next(iter(self._shares))]
        of_generation = self._shares.setdefault(request["generationId"], {})
        of_generation[_member(request)] = {request["memberId"]: share}

    def committed(self, commit: ObservedRequest, kept: Stored, error: int) -> Iterator[AboutClient]:
        """Take a commit, and its `stored`; yield its rows of `BREACHES`, without the group."""
        request = commit.request
        of_generation = self._shares.get(generation_in(request), {})
        share = of_generation.get(_member(request), {}).get(request.get("memberId", ""))
        back = []
        for name, offset in kept:
            lowest, last = offset, self._last.get(name)
            deletion = of_partition(self.deleted, name)
            if last and deletion and deletion.ends(last.commit.earliest_ms, commit.answered_ms):
                last = None
            if share is not None and name not in share:
                self.counts[NOT_THEIRS] += 1
            elif share is not None and last is not None:
                if self._may_be_sent_before(commit, last.commit):
                    lowest = min(offset, last.offset)
                elif offset < last.offset:
                    back.append((name, offset, last))
            self._last[name] = _Last(lowest, commit)
        sent_again = [one for one in back if one[1] in self._refused.get(one[0], ())]
        back = [one for one in back if one not in sent_again] or sent_again
        for name, offset, code in partitions_of(commit) if error else ():
            if code in AGAIN:
                self._refused[name].append(offset)
        for name, offset, last in back[:1]:
            row = breach(
                Breach.OFFSET_WENT_BACK,
                commit.answered_ms,
                f"{name} goes on from offset {last.offset}, committed by request {last.commit.id}",
                f"{commit.client_id} committed offset {offset} of {name}"
                + (f", and {len(back) - 1} more that went back" if len(back) > 1 else ""),
                shown_by=commit,
                proven=back != sent_again,
            )
            yield commit.client_id, row

    def _may_be_sent_before(self, commit: ObservedRequest, last: ObservedRequest) -> bool:
        """Tell whether a member may have sent a commit before one that was acted on first.

        librdkafka and Java go on with their numbers on each new connection to the coordinator;
        others may begin anew, so that theirs tell nothing. Seen on 4.3.0, where Java gave a
        connection up whose broker read it 3 s later.
        """
        if commit.earliest_ms <= last.answered_ms:
            return True
        senders = {(one.client_id, one.request.get("memberId") or "") for one in (commit, last)}
        is_old = commit.connection != last.connection and commit.serial < last.serial
        return is_old and len(senders) == 1 and self.goes_on(commit.client_id)


def _member(request: Mapping[str, Any]) -> str:
    """Return the instance id of a member, or its id, of a request."""
    return request.get("groupInstanceId") or request.get("memberId") or ""
