"""Reads a split of the client history: its lines in; what they say, by bucket of group, out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import inf

import msgspec

from reports.judgement.log.reading import APART, BLOCK, bucket_of
from reports.judgement.log.split_rows import Blob, Row, Rows, packed
from reports.judgement.run.history import EVENTS, HUB_LAG, Read
from reports.judgement.run.json_form import Account


class HistorySummary(msgspec.Struct, array_like=True):
    """The account of a split's lines; `rows` and `large` as of a log's (`SplitSummary`)."""

    account: Account
    late_ms: dict[float, int] = {}
    """How late gevent's hub ran, and how often so."""
    rows: dict[int, int] = {}
    large: list[str] = []

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.account.lines


def read(lines: Iterable[bytes], of_line: Read, buckets: int) -> Iterator[Blob | HistorySummary]:
    """Read the lines of a split: yield what they say of groups, and in the end the summary."""
    account, counted, large = Account(), Counter[int](), set[str]()
    late_ms = Counter[float]()
    by_group: dict[str, list[Row]] = defaultdict(list)
    left = BLOCK // 500  # lines of about so many bytes
    for said in account.entries(lines, of_line):
        if said.event == HUB_LAG and said.max_ms is not None:
            late_ms[said.max_ms] += 1
        if said.group is None or said.event not in EVENTS:
            continue
        by_group[said.group].append(msgspec.structs.astuple(said))
        left -= 1
        if left < 0:
            yield from _blobs(by_group, buckets, counted, large)
            left = BLOCK // 500
    yield from _blobs(by_group, buckets, counted, large)
    yield HistorySummary(account, dict(late_ms), dict(counted), sorted(large))


def _blobs(
    by_group: dict[str, list[Row]], buckets: int, counted: Counter[int], large: set[str]
) -> Iterator[Blob]:
    together: dict[int, list[Rows]] = defaultdict(list)
    for group, said in by_group.items():
        bucket, rows = bucket_of(group, buckets), Rows(group, said=said)
        counted[bucket] += len(said)
        if len(said) >= APART or group in large:
            large.add(group)
            since_ms = min(row[0] for row in said)
            yield Blob(bucket, group, len(said), since_ms, packed([rows]))
        else:
            together[bucket].append(rows)
    for bucket, several in together.items():
        yield Blob(bucket, "", sum(len(rows.said) for rows in several), -inf, packed(several))
    by_group.clear()
