"""What wraps lines, also several times, and in files that are not of a known form as a whole."""

import json
from zoneinfo import ZoneInfo

import pytest

from reports.incident.lines.form import recognised
from reports.incident.lines.reader import Line, Reader

MESSAGE = (
    "[GroupCoordinator id=1 topic=__consumer_offsets partition=49] Stabilized group {} generation 5"
    " with 2 members."
)
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
ONE, TWO = MESSAGE.format("g1"), MESSAGE.format("g2")
AT_MS = 1_767_607_203_000.0  # 2026-01-05 10:00:03 in UTC
STOCK = f"[2026-01-05 10:00:03,000] INFO {ONE} ({LOGGER})"
ECS = {"@timestamp": "2026-01-05T10:00:03.000Z", "message": ONE, "log": {"logger": LOGGER}}
STREAM = {"pod": "kafka-0"}
VALUES = [["1767607203000000000", STOCK], ["1767607203000000000", STOCK.replace("g1", "g2")]]
TEXTS = {
    "ECS": json.dumps(ECS),
    "ECS in json-file": json.dumps({"log": json.dumps(ECS) + "\n", "time": "2026-01-05T11:00:00Z"}),
    "ECS in CSV": f'2026-01-05 10:00:04.000,"{json.dumps(ECS).replace(chr(34), chr(34) * 2)}"',
    "GELF": json.dumps({"short_message": ONE, "timestamp": 1767607203.0, "_logger": LOGGER}),
    "logfmt": f'ts=2026-01-05T10:00:03Z level=info msg="{ONE}" logger={LOGGER}',
    "bold": STOCK.replace("Stabilized group g1", "**Stabilized group g1**"),
    "Markdown's escapes": STOCK.replace("_", "\\_").replace("[", "\\["),
    "found by grep, coloured": STOCK.replace("Stabilized", "\x1b[01;31m\x1b[KStabilized\x1b[m"),
    "a logger that is abbreviated": f"2026-01-05 10:00:03 INFO o.k.c.GroupMetadataManager: {ONE}",
    "a logger without parentheses": f"2026-01-05T10:00:03.000Z\tINFO\t{ONE}\t{LOGGER}",
    "JSON with escapes": json.dumps({"log": STOCK}).replace("[", "\\u005b"),
    "JSON that is cut": json.dumps({"log": STOCK, "stream": "stdout"})[:-20],
}  # fmt: skip


def lines_of(text: str, zone: str = "UTC") -> list[Line]:
    texts = text.split("\n")
    reader = Reader(recognised(texts), ZoneInfo(zone))
    return [line for one in texts for line in reader.read(one).lines]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_line_is_as_the_broker_wrote_it(kind: str) -> None:
    [line] = lines_of(TEXTS[kind])
    assert (line.at_ms, line.text, line.group) == (AT_MS, ONE, "g1")


def test_a_text_may_have_many_lines() -> None:
    loki = json.dumps({"data": {"result": [{"stream": STREAM, "values": VALUES}]}})
    for text in (loki, STOCK + STOCK.replace("g1", "g2")):
        assert [(line.at_ms, line.text) for line in lines_of(text)] == [(AT_MS, ONE), (AT_MS, TWO)]
    assert {line.source for line in lines_of(loki)} == {"kafka-0"}


def test_what_ends_all_lines_is_cut_where_no_logger_does() -> None:
    begin = "2026-01-05 10:00:03,000 INFO "
    text = "\n".join(f"{begin}{one} - server={n}" for n, one in enumerate((ONE, TWO, ONE)))
    assert [line.text for line in lines_of(text)] == [ONE, TWO, ONE]


def test_a_time_in_utc_tells_the_zone_before_the_given_one() -> None:
    text = f"2026-01-05T04:15:04.5Z {STOCK}"
    [line] = lines_of(text, "Europe/Berlin")
    assert line.at_ms == AT_MS - 5.75 * 3_600_000
    assert str(recognised([text]).zone) == "UTC+05:45"
    assert recognised([text.replace("04:15:04", "04:20:04")]).zone is None


def test_sources_are_what_stands_before_the_time() -> None:
    for before, source in {
        "kafka-1  | ": "kafka-1", "[pod/kafka-0/kafka] ": "pod/kafka-0/kafka", "12:": "",
        "logs/server.log:12:": "logs/server.log", "kafka-0 c 2026-01-05T10:00:03Z ": "kafka-0 c",
    }.items():  # fmt: skip
        assert {line.source for line in lines_of(before + STOCK)} == {source}
