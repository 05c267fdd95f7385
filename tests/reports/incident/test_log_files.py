"""Whose logs the files are, and what is doubtful about them."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from reports.incident.lines.reader import USED, SplitSummary
from reports.incident.log_files import log_files
from reports.judgement.errors import EvidenceError
from tests.reports.incident.incident_here import incident_of

FAILED = (
    "[2026-11-23 07:{at},357] INFO [GroupCoordinator {broker}]: Member {member} in group g has"
    " failed, removing it from the group (kafka.coordinator.group.GroupCoordinator)\n"
)
STARTING = (
    "[2026-11-23 07:00:00,001] INFO [BrokerLifecycleManager id={broker}] Incarnation x of broker"
    " {broker} in cluster {cluster} is now STARTING. (kafka.server.BrokerLifecycleManager)\n"
)
LEADER = (
    "[2026-11-23 07:01:00,357] INFO Group leader [member.id: m, group.instance.id: None] failed to"
    " join before rebalance timeout, and x (kafka.coordinator.group.GroupMetadata)\n"
)


def failed(at: str, member: str = "m", broker: int = 1) -> str:
    return FAILED.format(at=at, member=member, broker=broker)


LONG = failed("01:00", "a") + failed("09:00", "b")
WITHIN = failed("02:00", "c") + failed("08:00", "d")
OF_ANOTHER = WITHIN.replace("Coordinator 1", "Coordinator 2")
FOREIGN = "no line is recognised as a broker's"
OTHER = (
    "has other lines of broker 1 than one from the same time: logs of two clusters, or no rotated"
    " parts of one log"
)
COPIES = "2 of its lines stand in the logs twice, and count once"
BROKERS, JUMP = (
    "has lines of several brokers: 1, 2",
    "its clock jumps back by up to 240 s, or it has its newest lines first",
)
NOTICES: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "rotated parts of one log": (
        {"new": failed("02:00"), "old": failed("01:00") + failed("01:59")}, {},
    ),
    "one broker id from the same time": ({"one": LONG, "other": WITHIN}, {"other": [OTHER]}),
    "two brokers": ({"one": LONG, "other": OF_ANOTHER}, {}),
    "no time": ({"one": LONG, "words": "words\n"}, {"words": [FOREIGN]}),
    "a copy": ({"a": LONG, "b": LONG}, {"b": [COPIES]}),
    "several brokers in one file, and a clock that jumps back": (
        {"log": failed("05:00") + failed("01:00", broker=2)}, {"log": [BROKERS, JUMP]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTICES)
def test_what_is_doubtful(name: str) -> None:
    files, expected = NOTICES[name]
    found: dict[str, list[str]] = {}
    for notice in incident_of({name: text.encode() for name, text in files.items()})["notices"]:
        found.setdefault(notice["file"], []).append(notice["what"])
    assert found == expected


def test_a_file_without_a_broker_has_no_form() -> None:
    found = incident_of({"one": LONG.encode(), "core": bytes(range(256)) * 9})["files"]
    assert {file["file"]: bool(file["form"]) for file in found} == {"one": True, "core": False}


OF_TWO = {
    "one": STARTING.format(broker=1, cluster="abc") + failed("01:00", "a"),
    "other": STARTING.format(broker=1, cluster="xyz") + failed("02:00", "b") + failed("03:00", "c"),
}


@pytest.mark.parametrize("files", [OF_TWO, {"both": "".join(OF_TWO.values())}])
def test_logs_of_different_clusters_are_reported_one_after_another(files: dict[str, str]) -> None:
    contents = {name: text.encode() for name, text in files.items()}
    with pytest.raises(EvidenceError, match=r"abc \(\w+\), xyz \(\w+\);.* --cluster abc"):
        incident_of(contents)
    with pytest.raises(EvidenceError, match="no file names it; they name abc"):
        incident_of(contents, cluster="nobody")
    of = {name: incident_of(contents, cluster=name) for name in ("abc", "xyz")}
    assert [one["lines"]["session_expired"] for one in of.values()] == [1, 2]
    counts = [[one["coverage"][name] for name in ("lines_read", "used", "irrelevant", "rejected")]
              for one in of.values()]  # fmt: skip
    assert counts == [[5, 1, 4, 0], [5, 2, 3, 0]]
    assert [of["abc"]["last_ms"], of["xyz"]["last_ms"]] == [at_ms(1), at_ms(3)]


def at_ms(minute: int) -> float:
    return datetime(2026, 11, 23, 7, minute, 0, 357_000, UTC).timestamp() * 1000


def test_the_time_of_a_log_spans_what_stands_around_a_jump_of_its_clock() -> None:
    text = failed("03:00") + failed("05:00") + failed("01:00") + failed("04:00")
    (file,) = incident_of({"log": text.encode()})["files"]
    assert (file["first_ms"], file["last_ms"]) == (at_ms(1), at_ms(5))


def test_a_damaged_time_at_an_end_of_a_split_leaves_the_others_of_its_file() -> None:
    damaged = "[2026-11-99 10:00:00,000] INFO x (y)\n"
    (file,) = incident_of({"log": (failed("01:00") + damaged).encode()})["files"]
    assert (file["first_ms"], file["last_ms"]) == (at_ms(1), at_ms(1))
    times = [(None, None), (1.0, None), (2.0, 3.0), (None, 4.0), (None, None)]
    splits = [SplitSummary(Counter([USED]), first_ms=first, last_ms=last) for first, last in times]
    (file,) = log_files({"log": "log"}, {}, [("log", at, split) for at, split in enumerate(splits)])
    assert (file["first_ms"], file["last_ms"]) == (1.0, 4.0)


def test_a_line_that_stands_twice_in_a_file_counts_once() -> None:
    incident = incident_of({"log": (failed("01:00") * 2).encode()})
    assert incident["lines"] == {"session_expired": 1}
    assert incident["coverage"]["copies"] == 1


def test_lines_without_a_prefix_are_of_the_brokers_of_their_file() -> None:
    incident = incident_of({"log": (failed("01:00", broker=7) + LEADER).encode()})
    assert list(incident["brokers"]) == ["7"]


def test_lines_without_a_prefix_are_of_the_brokers_of_their_process() -> None:
    started = (
        "[2026-11-23 07:00:00,001] INFO [KafkaServer id=8] started (kafka.server.KafkaServer)\n"
    )
    of_7, of_8 = (f"kafka-{n}  | " for n in (7, 8))
    text = of_7 + failed("01:00", broker=7) + of_7 + failed("02:00", broker=7) + of_8 + started
    incident = incident_of({"log": (text + of_8 + LEADER).encode()})
    assert list(incident["brokers"]) == ["7", "8"]
