"""The pipeline's yardsticks: its own functions, called in a row by one process and one thread.

`same_work` reads, merges and judges as the tasks of Spark do: all tables, the promises, the rules
of clients; tables are written by the same code. It leaves out what follows the tables: the verdict
and the page.

`loop` reads, merges and replays each group once, by the rules of its release. It leaves out more:
the replay by the promises, the comparison of rebalances and lines, the rules of clients, members,
owners, offsets, digests, and it makes and writes no table.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import promised_by
from reports.ingest import storing
from reports.ingest.reading import buckets_for
from reports.ingest.sources import Count, lines_in, logs_of, ranges_of
from reports.ingest.tables import ALWAYS_KEPT, OF_GROUPS, OF_LINES
from reports.judgement.buckets import Add, Buckets, Check
from reports.judgement.collector import collector_paused
from reports.judgement.group import check_group
from reports.judgement.group_evidence import GroupCheck, GroupEvidence, Named
from reports.judgement.judging import Rules, context_of
from reports.judgement.log.merging import ReadLogs, read_logs
from reports.judgement.log.split_rows import How, Row, line_counts
from reports.judgement.logged import Chunk
from reports.judgement.run.deliveries import NOTHING_HELD
from reports.judgement.run.run_folder import RunFolder, logs_bytes
from reports.judgement.run_context import RunContext

Found = dict[str, int]
"""What was found, by which a side is checked: `lines` and `explained` responses."""
SPLIT_BYTES = 32 << 20


def only_replay(context: RunContext, group: str, chunks: Iterable[Chunk]) -> Iterator[Named]:
    """Replay a group once: yield a row of `bound` with its explained responses."""
    evidence = GroupEvidence(context, group)
    judgement = GroupCheck(evidence, context.profile)
    for chunk in chunks:
        judgement.add(evidence.add(chunk))
    judgement.finish()
    yield "bound", {"name": "explained", "count": judgement.explained}


def rules_of(run: RunFolder) -> Profile:
    """Return the rules of a run's release."""
    profile = run.profile
    assert profile is not None, "the oracle knows the releases of recorded runs"
    return profile.with_settings(run.settings)


def read(run: RunFolder) -> ReadLogs:
    """Read the logs of all brokers of a run."""
    ranges = ranges_of(logs_of(run.path, run.parser.folder), SPLIT_BYTES)
    lines = {one.split: list(lines_in(one, Count())) for one in ranges}
    with collector_paused():
        return read_logs(lines, run.parser, How(buckets_for(logs_bytes(run.path))))


def loop(folder: Path) -> Found:
    """Read, and replay each group once."""
    run = RunFolder(folder)
    logs = read(run)
    rules, counts = rules_of(run), Counter[str]()

    def add(name: str, rows: Iterable[Row]) -> None:
        if name == "bound":
            counts.update({what: number for _, what, number in rows})

    context = context_of(run, Rules(rules, rules, None), logs.merged, NOTHING_HELD)
    _judge(logs, partial(only_replay, context), add)
    return _found(logs, counts["explained"])


def same_work(folder: Path) -> Found:
    """Read, judge each group, and write all tables into the folder `same-work` of the run."""
    run = RunFolder(folder)
    logs = read(run)
    rules, folder = rules_of(run), folder / "same-work"
    shutil.rmtree(folder, ignore_errors=True)
    stored = (*OF_LINES, "lost", *OF_GROUPS)
    rules_by = Rules(rules, promised_by(rules), rules)
    context = context_of(run, rules_by, logs.merged, NOTHING_HELD)
    with storing.attempts(folder):
        files = storing.Files(folder, stored, (*ALWAYS_KEPT, "violations"))
        files.add("lost", logs.merged.lost)
        _judge(logs, partial(check_group, context), files.add)
        results = pa.Table.from_batches([files.end()])
        storing.commit(folder, stored, results)
    return _found(logs, sum(group["explained"] for group in storing.rows_in(results)["groups"]))


def _judge(logs: ReadLogs, check: Check, add: Add) -> None:
    blobs = [(split, blob) for split, of_split in logs.blobs.items() for blob in of_split]
    blobs.sort(key=lambda one: (one[1].bucket, one[1].group, one[1].since_ms, one[0]))
    large = frozenset(blob.group for _, blob in blobs if blob.group)
    with collector_paused():
        Buckets(logs.merged.starts, check, large).judged(blobs, add)


def _found(logs: ReadLogs, explained: int) -> Found:
    return {"lines": line_counts(logs.merged.processes).total(), "explained": explained}
