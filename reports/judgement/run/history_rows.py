"""Reads a split of the client history: its lines in; what they say, by bucket of group, out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reports.judgement.log.reading import BLOCK
from reports.judgement.log.split_rows import Blob, Packing, Row, Rows
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
    account, packing = Account(), Packing(buckets)
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
            yield from packing.blobs(_block(by_group), _since_ms)
            by_group, left = defaultdict(list), BLOCK // 500
    yield from packing.blobs(_block(by_group), _since_ms)
    yield HistorySummary(account, dict(late_ms), dict(packing.counted), sorted(packing.large))


def _block(by_group: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, Rows]]:
    return ((group, Rows(group, said=said)) for group, said in by_group.items())


def _since_ms(rows: Rows) -> float:
    return float(min(row[0] for row in rows.said))
