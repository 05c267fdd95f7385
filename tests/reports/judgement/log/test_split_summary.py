"""A log that is cut into splits gives the same rows as the whole log, wherever it is cut."""

import lzma
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.coordinator_lines import JAVA, SCALA
from reports.judgement.log.broker_log import Log, Start
from reports.judgement.log.parsing import Parser
from reports.judgement.log.processes import ProcessPart, entangled, runs, whole
from reports.judgement.log.split_summary import TailTooShortError, start_of, starts, summarised

RECORDED = Path(__file__).parents[3] / "recorded"
PARSERS = {True: Parser(JAVA, numbered=True), False: Parser(SCALA, numbered=False)}
Rows = dict[str, list[tuple[Any, ...]]]
Result = tuple[Rows, list[Any]]


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


def read(texts: list[str], parser: Parser, start: Start) -> tuple[Rows, list[ProcessPart]]:
    log = Log("1", "brokers/1/group.log", parser, start)
    for text in texts:
        log.read(text)
    return log.rows, log.end()


def joined(parser: Parser, pieces: list[tuple[Rows, list[ProcessPart]]]) -> Result:
    rows = {name: [row for of, _ in pieces for row in of[name]] for name in pieces[0][0]}
    parts = [part for _, of in pieces for part in of]
    for number in entangled(parts):
        placed = sorted(
            (row[4], row[2], row[5])
            for row in rows["coverage"]
            if row[3] == number and row[4] is not None and row[5] is not None
        )
        exact = list(runs(placed))
        for part in parts:
            if part.number == number:
                part.runs, exact = exact, []
    processes, lost = whole("1", parts)
    rows["lost"] = sorted([*rows["lost"], *lost])
    return rows, processes


def repeated(pieces: list[list[str]], begins: list[Start], parser: Parser) -> Iterator[Start]:
    """Add to each start the requests that its process logged in the splits before."""
    seen: dict[int, set[Any]] = {}
    for texts, start in zip(pieces, begins, strict=True):
        yield start._replace(seen=frozenset(seen.get(start.process, ())))
        rows, _ = read(texts, parser, start)
        process = {row[2]: row[3] for row in rows["coverage"]}
        for row in rows["requests"]:
            seen.setdefault(process[row[3]], set()).add((row[8], row[9]))


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_any_cut_gives_the_rows_of_the_whole(numbered: bool, seed: int) -> None:
    chance = random.Random(seed)
    parser = PARSERS[numbered]
    log = altered(LOGS[numbered], numbered, chance)
    expected = joined(parser, [read(log, parser, start_of(log, parser))])
    count = chance.choice((1, 2, 5, 40))
    odd = {at for at, text in enumerate(log) if at and not parser.split(text).level}
    cuts = sorted({*chance.sample(range(1, len(log)), count)} | odd)
    pieces = [log[a:b] for a, b in zip([0, *cuts], [*cuts, len(log)], strict=True)]
    begins = starts([summarised(piece, parser, inf) for piece in pieces])
    begins = list(repeated(pieces, begins, parser))
    read_pieces = [
        read(*split) for split in zip(pieces, [parser] * len(pieces), begins, strict=True)
    ]
    assert joined(parser, read_pieces) == expected
    assert len(expected[0]["coverage"]) == len(log)


@pytest.mark.parametrize("tail_ms", [5.0, 1_000.0])
def test_a_tail_is_enough_or_says_that_it_is_not(tail_ms: float) -> None:
    parser = PARSERS[False]
    enough = 0
    for seed in range(40):
        chance = random.Random(seed)
        log = altered(LOGS[False], False, chance)
        cut = chance.randrange(1, len(log))
        pieces = [log[:cut], log[cut:]]
        exact = starts([summarised(piece, parser, inf) for piece in pieces])
        try:
            begins = starts([summarised(piece, parser, tail_ms) for piece in pieces])
        except TailTooShortError:
            continue
        enough += 1
        for piece, start, other in zip(pieces, begins, exact, strict=True):
            assert read(piece, parser, start) == read(piece, parser, other)
    assert enough > 20 if tail_ms > 100 else enough < 40


def test_process_parts_without_lines_are_no_processes() -> None:
    parser = PARSERS[True]
    parts = read(LOGS[True], parser, start_of(LOGS[True], parser))[1]
    assert [part.number for part in parts] == [0, 1]
    assert [process.number for process in whole("1", parts)[0]] == [1]
