"""Reads a split of the client history: its lines in; what they say, by bucket of group, out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from reports.judgement.log.reading import BLOCK
from reports.judgement.log.split_rows import Blob, Packing, Rows, unpacked
from reports.judgement.run.history import EVENTS, HUB_LAG, ClientEvent, Read, events_of, in_order
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
    by_group: dict[str, Rows] = {}
    left = BLOCK // 500  # lines of about so many bytes
    for said in account.entries(lines, of_line):
        if said.event == HUB_LAG and said.max_ms is not None:
            late_ms[said.max_ms] += 1
        if said.group is None or said.event not in EVENTS:
            continue
        if said.group not in by_group:
            by_group[said.group] = Rows.of(said.group)
        by_group[said.group].said.append(msgspec.structs.astuple(said))
        left -= 1
        if left < 0:
            yield from packing.blobs(by_group.values())
            by_group, left = {}, BLOCK // 500
    yield from packing.blobs(by_group.values())
    yield HistorySummary(account, dict(late_ms), dict(packing.counted), sorted(packing.large))


def events_by_group(
    lines: Iterable[bytes], of_line: Read, account: Account
) -> dict[str, list[ClientEvent]]:
    """Read lines; return the events of each group in order, and keep account of the lines."""
    events: dict[str, list[ClientEvent]] = defaultdict(list)
    for one in read(lines, of_line, 1):
        if isinstance(one, HistorySummary):
            account.merge(one.account)
            continue
        for rows in unpacked(one.data):
            events[rows.group or ""] += events_of(rows.said)
    return {group: sorted(found, key=in_order) for group, found in events.items()}
