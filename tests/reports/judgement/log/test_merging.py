"""A log that is cut into splits gives the same rows as the whole log, wherever it is cut."""

import lzma
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.coordinator_lines import JAVA, SCALA
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import read_logs
from reports.judgement.log.parsing import Parser

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
    tables = logs.tables()
    tables["lost"].sort(key=repr)
    return tables, logs.merged.processes


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_any_cut_gives_the_rows_of_the_whole(numbered, seed):
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


CUTS = pytest.mark.parametrize("cuts", [[], [50], [20, 50, 60, 61]])


@CUTS
@pytest.mark.parametrize("is_rejected", [False, True])
def test_both_lines_of_one_serial_number_are_lost_wherever_the_log_is_cut(is_rejected, cuts):
    """Nobody knows which of them was added. Each is lost once, though it is rejected, too."""
    log = LOGS[True][:100]
    place = next(n for n, one in enumerate(log) if n and ("Completed req" in one) is is_rejected)
    assert place < 50
    if is_rejected:
        log[place] = log[place].replace('"errorCode":', '"error":', 1)
    log.insert(60, log[place])
    tables, _ = result(cut(log, cuts), PARSERS[True])
    twice = sorted(row["line"] for row in tables["lost"] if "stands twice" in row["what"])
    assert twice == [place + 1, 61]
    unreadable = [row["line"] for row in tables["requests"] if not row["readable"]]
    assert unreadable == (twice if is_rejected else [])


@CUTS
def test_the_second_of_one_request_is_rejected_wherever_the_log_is_cut(cuts):
    log = LOGS[True][:100]
    place = next(at for at, line in enumerate(log) if "Completed request" in line)
    head = log[60].split(" ", 3)[:3]
    log[60] = " ".join([*head, log[place].split(" ", 3)[3]])
    tables, _ = result(cut(log, cuts), PARSERS[True])
    assert [row["line"] for row in tables["requests"] if not row["readable"]] == [61]
    assert [row["line"] for row in tables["coverage"] if row["status"] == "rejected"] == [61]
