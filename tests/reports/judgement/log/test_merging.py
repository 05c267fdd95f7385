"""A log that is cut into splits gives the same rows as the whole log, wherever it is cut."""

import lzma
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.coordinator_lines import JAVA, SCALA
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import Merged, TailTooShortError, merge
from reports.judgement.log.parsing import Parser
from reports.judgement.log.reading import read
from reports.judgement.log.split_rows import Blob, How, SplitSummary
from reports.judgement.log.whole import looks_at, read_logs, tables_of

RECORDED = Path(__file__).parents[3] / "recorded"
PARSERS = {True: Parser(JAVA, numbered=True), False: Parser(SCALA, numbered=False)}
LOG = "runs/brokers/1/group.log"
Result = tuple[dict[str, Any], list[dict[str, Any]]]


def lines_of(folder: str, broker: int) -> list[str]:
    packed = (RECORDED / folder / f"brokers/{broker}/group.log.xz").read_bytes()
    return lzma.decompress(packed).decode().splitlines()


LOGS = {
    True: lines_of("kafka-4.3.0", 1)[:250],
    False: lines_of("kafka-3.9.1-scala", 1)[:250],
}


def altered(lines: list[str], numbered: bool, chance: random.Random) -> list[str]:
    """Restart the broker in the log, and lose, repeat, swap, cut and add some lines."""
    again = [line.replace("127.0.0.1:", f"127.0.0.{chance.choice((1, 2))}:") for line in lines]
    log = [*lines, *(later(line, numbered) for line in again)]
    for _ in range(chance.choice((0, 0, 6))):
        at = chance.randrange(len(log) - 40)
        match chance.randrange(6):
            case 0:
                del log[at : at + chance.randrange(1, 4)]
            case 1:
                log.insert(at + chance.randrange(1, 40), log[at])
            case 2:
                log[at], log[at + 1] = log[at + 1], log[at]
            case 3:
                log[at] = log[at][: chance.randrange(len(log[at]))]
            case 4:
                log.insert(at, chance.choice(("", "garbage", "\ufffd (x)", log[at] + "\r")))
            case 5:
                log.append(log.pop(at))
    return log


def later(line: str, numbered: bool) -> str:
    """Write a line an hour later, as a process that starts with nano clock 0 does."""
    if numbered:
        sn, ms, nanos, rest = line.split(" ", 3)
        return f"{sn} {int(ms) + 3_600_000} {int(nanos) // 2} {rest}"
    at = datetime.strptime(line[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return f"{at + timedelta(hours=1):%Y-%m-%d %H:%M:%S}{line[19:]}"


def cut(texts: list[str], cuts: Sequence[int]) -> dict[Split, list[bytes]]:
    """Cut a log before some lines."""
    lines = [text.encode() for text in texts]
    ends = [*cuts, len(lines)]
    return {Split(LOG, a): lines[a:b] for a, b in zip([0, *cuts], ends, strict=True)}


def result(lines: dict[Split, list[bytes]], parser: Parser) -> Result:
    logs = read_logs(lines, parser)
    tables = logs.tables(parser)
    tables["lost"].sort(key=repr)
    return tables, logs.merged.processes


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_any_cut_gives_the_rows_of_the_whole(numbered: bool, seed: int) -> None:
    chance = random.Random(seed)
    parser = PARSERS[numbered]
    log = altered(LOGS[numbered], numbered, chance)
    expected = result(cut(log, []), parser)
    count = chance.choice((1, 2, 5, 40))
    odd = {at for at, text in enumerate(log) if at and not parser.split(text).level}
    cuts = sorted({*chance.sample(range(1, len(log)), count)} | odd)
    assert result(cut(log, cuts), parser) == expected
    assert sum(one[status] for one in expected[1] for status in ("used", "irrelevant", "rejected")
               ) == len(log)  # fmt: skip


@pytest.mark.parametrize("tail_ms", [5.0, 1_000.0])
def test_a_tail_is_enough_or_says_that_it_is_not(tail_ms: float) -> None:
    parser = PARSERS[False]
    enough = 0
    for seed in range(40):
        chance = random.Random(seed)
        log = altered(LOGS[False], False, chance)
        lines = cut(log, [chance.randrange(1, len(log))])
        exact = merged(lines, parser, inf)
        try:
            found = merged(lines, parser, tail_ms)
        except TailTooShortError:
            continue
        enough += 1
        assert found.processes == exact.processes
        for split, place in found.starts.items():
            blobs = [one for one in read(lines[split], "1", parser) if isinstance(one, Blob)]
            rows = tables_of(blobs, place, parser)
            assert rows == tables_of(blobs, exact.starts[split], parser)
    assert enough > 20 if tail_ms > 100 else enough < 40


def merged(lines: dict[Split, list[bytes]], parser: Parser, tail_ms: float) -> Merged:
    how = How(tail_ms=tail_ms)
    summaries = {}
    for split, texts in lines.items():
        *_, summary = read(texts, "1", parser, how)
        assert isinstance(summary, SplitSummary)
        summaries[split] = summary
    return merge(summaries, parser, looks_at(lines, parser, how))
