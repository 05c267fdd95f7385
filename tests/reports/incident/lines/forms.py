"""The forms in which people hold brokers' logs: a function a kind builds it from stock lines.

`FORMS` is what `docs/incidents.md` lists: the name that the report gives, a builder, the step of
its times. A stock line is `[date] LEVEL message (logger)`; one that is none (a trace) goes on.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from kafka_protocol.log_line import dated_ms


class Record(NamedTuple):
    date: str
    level: str
    body: str
    logger: str


Layout = Callable[[Record], str]
Wrapping = Callable[[str, datetime], str]
"""A line and its time in UTC in; the text of it in the file out."""


_RECORD = re.compile(r"\[(\d{4}-[^\]]+)\] ([A-Z]+) (.*?)(?: \(([\w.$-]+)\))?$")


class FormKind(NamedTuple):
    name: str
    build: Callable[[Iterable[str], timezone], list[str]]
    resolution_ms: float = 1.0
    tells_zone: bool = False
    """Whether it has a time in UTC beside the broker's."""
    instants: bool = False
    """Whether the broker's own times are in UTC."""


def _kind(
    name: str, wrapping: Wrapping | None = None, layout: Layout | None = None, step_ms: float = 1.0,
    *, tells_zone: bool = False, instants: bool = False,
) -> FormKind:  # fmt: skip
    def build(stock: Iterable[str], zone: timezone) -> list[str]:
        built, at = list[str](), datetime(2026, 1, 5, tzinfo=UTC)
        for text in stock:
            line = text
            if match := _RECORD.match(text):
                one = Record(*match.groups(default=""))
                at = datetime.fromisoformat(one.date).replace(tzinfo=zone).astimezone(UTC)
                line = layout(one) if layout else text
            built += (wrapping(line, at) if wrapping else line).split("\n")
        return built

    return FormKind(name, build, step_ms, tells_zone, instants)


def _strimzi_3(one: Record) -> str:
    return f"{one.date} {one.level} {one.body} ({one.logger}) [data-plane-kafka-request-handler-0]"


def _strimzi_4(one: Record) -> str:
    short = one.logger.rpartition(".")[2]
    return f"{one.date[:19]} {one.level:5} [event-processor-1] {short}:71 - {one.body}"


def _operator(one: Record) -> str:
    return (
        f"[{one.level}] {one.date} [event-processor-1] {one.logger} complete"
        f" - app=kafka, clusterId=x, server=0 - {one.body}"
    )


def _numbered(one: Record) -> str:
    return f"[{one.date}] {one.level} {one.body} ({one.logger}:66)"


def _iso(date: str) -> str:
    return date.replace(" ", "T").replace(",", ".") + "Z"


def _ecs(one: Record) -> str:
    return json.dumps({
        "@timestamp": _iso(one.date), "ecs.version": "1.2.0", "log.level": one.level,
        "message": one.body, "process.thread.name": "main", "log.logger": one.logger,
    })  # fmt: skip


def _logstash(one: Record) -> str:
    return json.dumps({
        "@version": 1, "source_host": "b1", "message": one.body, "thread_name": "main",
        "@timestamp": _iso(one.date), "level": one.level, "logger_name": one.logger,
    })  # fmt: skip


def _json_layout(one: Record) -> str:
    ms = dated_ms(one.date) or 0
    return json.dumps({
        "instant": {"epochSecond": ms // 1000, "nanoOfSecond": ms % 1000 * 1_000_000},
        "thread": "main", "level": one.level, "loggerName": one.logger, "message": one.body,
        "endOfBatch": False, "threadId": 33,
    })  # fmt: skip


def _nano(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06}114Z"


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _json_file(line: str, at: datetime) -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": _nano(at)})


def _journald(line: str, at: datetime) -> str:
    return json.dumps({
        "_HOSTNAME": "b1", "MESSAGE": line, "__REALTIME_TIMESTAMP": str(_ms(at) * 1000),
        "SYSLOG_IDENTIFIER": "kafka",
    })  # fmt: skip


def _csv(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _event(line: str, at: datetime) -> str:
    ingested = _ms(at + timedelta(seconds=4))
    event = {
        "logStreamName": "kafka-0", "timestamp": _ms(at), "message": line,
        "ingestionTime": ingested, "eventId": "3" * 56,
    }  # fmt: skip
    return json.dumps({"events": [event]}, indent=4)


def _loki(line: str, at: datetime) -> str:
    return json.dumps({"line": line, "timestamp": str(_ms(at) * 1_000_000), "fields": {"pod": "k"}})


def _kibana(line: str, at: datetime) -> str:
    source = {"@timestamp": _nano(at), "host": {"name": "b1"}, "message": line}
    return json.dumps({"_index": "logs-2026.01.05", "_id": "x", "_source": source})


STOCK = "Kafka's stock pattern"
FORMS: dict[str, FormKind] = {
    "stock, Confluent Platform, bitnami": _kind(STOCK),
    "stock with line numbers": _kind(f"{STOCK} with line numbers", layout=_numbered),
    "Strimzi to 3.9": _kind("Strimzi's pattern (to 3.9)", layout=_strimzi_3),
    "Strimzi from Kafka 4": _kind("Strimzi's pattern (Kafka 4)", None, _strimzi_4, 1000.0),
    "Confluent's operator": _kind("the pattern of Confluent's operator", layout=_operator),
    "Elastic Common Schema": _kind("JSON (Elastic Common Schema)", layout=_ecs, instants=True),
    "JsonTemplateLayout": _kind("JSON (log4j's)", layout=_logstash, instants=True),
    "JsonLayout": _kind("JSON (log4j's)", layout=_json_layout, instants=True),
    "compose": _kind(
        f"{STOCK} behind a prefix", lambda line, _: f"kafka-1  | {line}"
    ),
    "docker logs -t": _kind(
        f"{STOCK} behind a prefix", lambda line, at: f"{_nano(at)} {line}", tells_zone=True
    ),
    "Docker's json-file": _kind(f"{STOCK} in JSON", _json_file, tells_zone=True),
    "kubectl logs --timestamps": _kind(
        "Strimzi's pattern (Kafka 4) behind a prefix", lambda line, at: f"{_nano(at)} {line}",
        _strimzi_4, 1000.0, tells_zone=True,
    ),
    "kubectl logs --prefix": _kind(
        f"{STOCK} behind a prefix", lambda line, _: f"[pod/kafka-0/kafka] {line}"
    ),
    "CRI": _kind(
        f"{STOCK} behind a prefix", lambda line, at: f"{_nano(at)} stdout F {line}", tells_zone=True
    ),
    "journald": _kind(
        f"{STOCK} behind a prefix",
        lambda line, at: f"{at:%b %d %H:%M:%S} b1 kafka-server-start.sh[1234]: {line}",
    ),
    "journald -o short-iso": _kind(
        f"{STOCK} behind a prefix",
        lambda line, at: f"{at:%Y-%m-%dT%H:%M:%S}+0000 b1 kafka[1234]: {line}", tells_zone=True,
    ),
    "journald -o json": _kind(f"{STOCK} in JSON", _journald, tells_zone=True),
    "stern, k9s": _kind(f"{STOCK} behind a prefix", lambda line, _: f"kafka-0 kafka {line}"),
    "CloudWatch console CSV": _kind(
        f"{STOCK} in CSV", lambda line, at: f"{_ms(at)},{_csv(line)}", tells_zone=True
    ),
    "CloudWatch with ingestion times": _kind(
        STOCK,
        lambda line, at: f"{line},{at + timedelta(seconds=4):%Y-%m-%d %H:%M:%S}.000",
    ),
    "aws logs tail": _kind(
        f"{STOCK} behind a prefix",
        lambda line, at: f"{at:%Y-%m-%dT%H:%M:%S.%f}+00:00 kafka/b1 {line}", tells_zone=True,
    ),
    "aws logs filter-log-events": _kind(f"{STOCK} in JSON", _event),
    "Loki export": _kind(f"{STOCK} in JSON", _loki, tells_zone=True),
    "Kibana export": _kind(f"{STOCK} in JSON", _kibana, tells_zone=True),
    "Kibana CSV": _kind(
        f"{STOCK} in CSV",
        lambda line, at: f'"{at:%b} {at.day}, {at:%Y @ %H:%M:%S}.{_ms(at) % 1000:03}",{_csv(line)}',
    ),
    "grep -n": _kind(f"{STOCK} behind a prefix", lambda line, _: f"123:{line}"),
    "grep -H": _kind(f"{STOCK} behind a prefix", lambda line, _: f"logs/server.log.1:{line}"),
    "PowerShell's UTF-16": _kind(
        STOCK, lambda line, _: line.encode("utf-16-le").decode("latin-1") + "\r\0"
    ),
    "a box of a terminal": _kind(STOCK, lambda line, _: f"│ {line}        │"),
    "colours": _kind(
        f"{STOCK} behind a prefix",
        lambda line, _: f"\x1b[36mkafka-1  |\x1b[0m {line}\x1b[0m",
    ),
}  # fmt: skip
"""By the names in `docs/incidents.md`."""
MESSAGE = (
    "[GroupCoordinator id=1 topic=__consumer_offsets partition=49] Stabilized group g1"
    " generation 5 with 2 members."
)
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"


def sample(kind: str) -> str:
    """Return a line of a kind, as the documentation shows it: its message is `MESSAGE`."""
    stock = f"[2026-01-05 10:00:03,000] INFO {MESSAGE} ({LOGGER})"
    [line] = [line for line in FORMS[kind].build([stock], UTC) if "INFO" in line] or [
        "(two bytes a character)"
    ]
    return line.strip().replace(MESSAGE, "MESSAGE").replace(LOGGER, "LOGGER").replace("\x1b", "␛")
