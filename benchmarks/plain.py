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
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import promised_by
from reports.ingest import storing
from reports.ingest.reading import buckets_for
from reports.ingest.sources import Count, File, lines_in, logs_of
from reports.ingest.tables import ALWAYS_KEPT, OF_GROUPS, OF_LINES
from reports.judgement.buckets import Add, Buckets, Check
from reports.judgement.collector import collector_paused
from reports.judgement.group import check_group
from reports.judgement.group_evidence import GroupCheck, GroupEvidence, Named
from reports.judgement.judging import Rules, context_of
from reports.judgement.log.log_rows import How, Row, line_counts
from reports.judgement.log.merging import ReadLogs, read_logs
from reports.judgement.logged import Chunk
from reports.judgement.run.deliveries import NOTHING_HELD
from reports.judgement.run.run_folder import RunFolder, logs_bytes
from reports.judgement.run_context import RunContext

Found = dict[str, int]
"""What was found, by which a side is checked: `lines`, `rejected`, `explained`, `violations`."""


@dataclass(frozen=True)
class Lines:
    """The lines of a file; they may be read more than once."""

    of: File

    def __iter__(self) -> Iterator[bytes]:
        """Read them."""
        return lines_in(self.of, Count())


def only_replay(context: RunContext, group: str, chunks: Iterable[Chunk]) -> Iterator[Named]:
    """Replay a group once: yield rows of `bound` with its explained and its wrong responses."""
    evidence = GroupEvidence(context, group)
    judgement = GroupCheck(evidence, context.profile)
    for chunk in chunks:
        judgement.add(evidence.add(chunk))
    result = judgement.finish()
    yield "bound", {"name": "explained", "count": judgement.explained}
    yield "bound", {"name": "violations", "count": len(result.violations)}


def rules_of(run: RunFolder) -> Profile:
    """Return the rules of a run's release."""
    profile = run.profile
    assert profile is not None, "the oracle knows the releases of recorded runs"
    return profile.with_settings(run.settings)


def read(run: RunFolder) -> ReadLogs:
    """Read the logs of all brokers of a run."""
    logs = logs_of(run.path, run.parser.folder).values()
    lines = {file.path: Lines(file) for files in logs for file in files}
    with collector_paused():
        return read_logs(lines, run.parser, How(buckets_for(logs_bytes(run.path))))


def loop(run: RunFolder, logs: ReadLogs) -> Found:
    """Replay each group once."""
    rules, counts = rules_of(run), Counter[str]()

    def add(name: str, rows: Iterable[Row]) -> None:
        if name == "bound":
            counts.update({what: number for _, what, number in rows})

    context = context_of(run, Rules(rules, rules, None), logs.merged, NOTHING_HELD)
    _judge(logs, partial(only_replay, context), add)
    return _found(logs, counts["explained"], counts["violations"])


def same_work(run: RunFolder, logs: ReadLogs) -> Found:
    """Judge each group, and write all tables into the folder `same-work` of the run."""
    rules, folder = rules_of(run), run.path / "same-work"
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
    rows = storing.rows_in(results)
    explained = sum(group["explained"] for group in rows["groups"])
    return _found(logs, explained, len(rows.get("violations", ())))


def _judge(logs: ReadLogs, check: Check, add: Add) -> None:
    blobs = [(broker, blob) for broker, of_log in logs.blobs.items() for blob in of_log]
    blobs.sort(key=lambda one: (one[1].bucket, one[1].group, one[1].since_ms, one[0]))
    large = frozenset(blob.group for _, blob in blobs if blob.group)
    with collector_paused():
        Buckets(logs.merged.starts, check, large).judged(blobs, add)


def _found(logs: ReadLogs, explained: int, violations: int) -> Found:
    processes = logs.merged.processes
    return {
        "lines": line_counts(processes).total(),
        "rejected": sum(one["rejected"] for one in processes),
        "explained": explained,
        "violations": violations,
    }
