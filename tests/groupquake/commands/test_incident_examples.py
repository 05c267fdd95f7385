"""Logs as people have them: what is right for each is known (tests/recorded/incidents)."""

import io
import json
import os
import re
import sys
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from groupquake.commands import incident
from reports import EvidenceError
from tests.groupquake.conftest import Command
from tests.reports.reading import Page

FOLDER = Path(__file__).parents[2] / "recorded" / "incidents"
BEGUN_MS = datetime(2026, 1, 5, 10, tzinfo=UTC).timestamp() * 1000
Json = dict[str, Any]


def one(found: Json, took_ms: float | None = 3_010, ended_ms: float = 3_010) -> None:
    """Require one rebalance of g1, from generation 4, begun by a new member on broker 1."""
    assert found["rebalances_by_reason"] == {"new_member": 1}
    assert list(found["groups"]) == ["g1"]
    assert list(found["brokers"]) == ["1"]
    assert (found["first_ms"], found["last_ms"]) == (BEGUN_MS, BEGUN_MS + ended_ms)
    if took_ms is not None:
        [rebalance] = found["longest"]
        about = {name: rebalance[name] for name in ("at_ms", "took_ms", "generation", "clients")}
        assert about == {
            "at_ms": BEGUN_MS, "took_ms": took_ms, "generation": 4, "clients": "app",
        }  # fmt: skip
    assert found["coverage"]["rejected"] == 0


def to_the_second(found: Json) -> None:
    one(found, took_ms=3_000, ended_ms=3_000)
    [file] = found["files"]
    assert "times to the second" in file["form"]


def folded(found: Json) -> None:
    one(found)
    assert found["coverage"]["copies"] == found["files"][0]["copies"] == 3


def without_assignment(found: Json) -> None:
    one(found, took_ms=None, ended_ms=3_000)


def of_another_broker(found: Json) -> None:
    assert found["rebalances_by_reason"] == {"leader_rejoin": 1, "new_member": 1}
    assert found["longest"] == []  # the first has no end in the log, and neither has the second
    assert found["groups"]["g1"]["endings"] == {"no end in the logs": 2}


def missing(found: Json) -> None:
    assert found["longest"] == []
    [gap] = found["groups"]["g1"]["missing"]
    assert (gap["from_generation"], gap["until_generation"]) == (5, 8)


def a_storm(found: Json) -> None:
    [gap] = found["groups"]["g1"]["missing"]
    assert (gap["from_generation"], gap["until_generation"]) == (1692, 1697)
    [storm] = found["groups"]["g1"]["storms"]
    assert storm["rebalances"] == found["rebalances"] + found["rebalances_missing"]
    assert "storm" in " ".join(found["headline"])


def begun_before(found: Json) -> None:
    assert found["rebalances"] == 1
    assert found["groups"]["g1"]["rebalances"] == 1
    assert found["longest"] == []


def jumped(found: Json) -> None:
    assert any("3,603 s" in notice["what"] for notice in found["notices"])


def not_known(found: Json) -> None:
    [member] = found["worst_members"]
    assert (member["client"], member["static"]) == ("3", None)


def one_class(found: Json) -> None:
    assert found["rebalances_by_reason"] == {"new_member": 2}
    assert [(row["client"], row["rebalances"]) for row in found["worst_members"]] == [("app", 2)]


def nobody(found: Json) -> None:
    assert found["rebalances"] == 1
    assert not any(row["rebalances"] for row in found["worst_members"])


def fenced(found: Json) -> None:
    assert found["coverage"]["used"] == 2
    assert found["lines"]["fenced"] == 1
    assert [row["instance"] for row in found["fenced"]] == ["1"]


RIGHT: dict[str, Callable[[Json], None]] = {
    **dict.fromkeys(
        ("01", "01-two-a 01-two-b", "02", "03", "05", "09", "17", "17-console-csv", "23", "40",
         "45", "47", "padded-level", "thread-before-message", "utf16", "85"),
        one,
    ),
    "06": folded, "json-layout": without_assignment, "strimzi-kafka4": to_the_second,
    "10": of_another_broker, "12": missing, "14": a_storm, "27": begun_before, "41": jumped,
    "18": not_known, "34": one_class, "36": nobody, "fenced-tail": fenced,
}  # fmt: skip
REFUSED = {
    "20": "a coordinator's line without a time",
    "29": r"g848 \(consumer protocol\)",
    "40-client": "a client's log",
}


def test_every_example_has_its_place_here() -> None:
    known = {name for names in [*RIGHT, *REFUSED] for name in names.split()}
    assert known == {file.stem for file in FOLDER.glob("*.log")}


@pytest.mark.parametrize("names", RIGHT)
def test_what_is_right(names: str, tmp_path: Path, groupquake: Command) -> None:
    done = groupquake("report", *(FOLDER / f"{name}.log" for name in names.split()))
    assert done.code == 2, done.err
    found = json.loads((tmp_path / "incident" / "incident.json").read_text())
    RIGHT[names](found)
    page = Page((tmp_path / "incident" / "incident.html").read_text())
    assert found["headline"][0] in page.text


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, groupquake: Command) -> None:
    done = groupquake("report", FOLDER / f"{name}.log")
    assert done.code == 64
    assert len([line for line in done.err.splitlines() if line.startswith("groupquake:")]) == 1
    assert re.search(REFUSED[name], done.err)


def found_in(folder: Path) -> Json:
    found: Json = json.loads((folder / "incident" / "incident.json").read_text())
    return found


@pytest.mark.parametrize("place", ["-", "/dev/stdin"])
def test_standard_input(
    place: str, tmp_path: Path, groupquake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.TextIOWrapper(io.BytesIO((FOLDER / "03.log").read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    assert groupquake("report", place).code == 2
    one(found_in(tmp_path))
    empty = groupquake("report", place)  # it is read to its end
    assert (empty.code, "standard input: no line" in empty.err) == (64, True)


def test_a_pipe(tmp_path: Path, groupquake: Command) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = (FOLDER / "03.log").read_bytes()
    writer = Thread(target=(tmp_path / "pipe").write_bytes, args=[content])
    writer.start()
    assert groupquake("report", tmp_path / "pipe").code == 2
    writer.join()
    one(found_in(tmp_path))


@pytest.mark.parametrize("packed", ["", "gz", "xz", "bz2"])
def test_an_archive(packed: str, tmp_path: Path, groupquake: Command) -> None:
    name = f"logs.tar{packed and '.'}{packed}"
    with tarfile.open(tmp_path / name, f"w:{packed}") as archive:
        for part in ("a", "b"):
            archive.add(FOLDER / f"01-two-{part}.log", f"kafka/{part}.log")
    assert groupquake("report", tmp_path / name).code == 2
    found = found_in(tmp_path)
    one(found)
    names = [file["file"].removeprefix(f"{tmp_path}/") for file in found["files"]]
    assert names == [f"{name}!/kafka/a.log", f"{name}!/kafka/b.log"]


def test_an_archive_that_is_cut_off(tmp_path: Path, groupquake: Command) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(FOLDER / "01.log", "first.log")
        archive.add(FOLDER / "06.log", "last.log")
    at = whole.getvalue().index(b"Stabilized", whole.getvalue().index(b"last.log"))
    (tmp_path / "logs.tar").write_bytes(whole.getvalue()[:at])
    assert groupquake("report", tmp_path / "logs.tar").code == 2
    noticed = " ".join(notice["what"] for notice in found_in(tmp_path)["notices"])
    assert "the archive is cut off" in noticed


def test_a_name_that_says_another_packing(tmp_path: Path, groupquake: Command) -> None:
    (tmp_path / "server.log.1.gz").write_bytes((FOLDER / "03.log").read_bytes())
    assert groupquake("report", tmp_path / "server.log.1.gz").code == 2
    one(found_in(tmp_path))


@pytest.mark.parametrize("cut", [0, 1])
def test_utf_16_is_read_as_far_as_it_goes(cut: int, tmp_path: Path, groupquake: Command) -> None:
    text = "\n".join(["words", (FOLDER / "03.log").read_text()])
    for encoding in ("utf-16", "utf-16-be"):
        content = text.encode(encoding)
        (tmp_path / f"{encoding}.log").write_bytes(content[: len(content) - cut])
        done = groupquake("report", tmp_path / f"{encoding}.log")
        assert done.code == 2, done.err
        found = found_in(tmp_path)
        one(found)
        assert any("UTF-16" in notice["what"] for notice in found["notices"]) == bool(cut)


def test_what_cannot_be_read_is_named(tmp_path: Path, groupquake: Command) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.log").touch()
    (tmp_path / "words.log").write_text("nothing of the kind\n")
    wrong = {
        ("folder",): "no file is there",
        ("empty.log",): "empty.log: no line",
        ("words.log",): "nothing of Kafka: .*it begins: nothing of the kind",
        ("words.log", "--cluster", "x"): "nothing of Kafka",
    }
    for (name, *options), why in wrong.items():
        done = groupquake("report", tmp_path / name, *options)
        assert done.code == 64, done.err
        assert re.search(why, done.err), done.err


def test_spark_reads_what_is_large_or_where_it_is_asked_for(
    groupquake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise EvidenceError("Spark reads it")

    monkeypatch.setattr(incident, "_on_spark", refuse)
    log = FOLDER / "03.log"
    assert groupquake("report", log).code == 2
    given = io.TextIOWrapper(io.BytesIO(log.read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    for words in ([log, "--master", "local[1]"], [log, "--output", "s3a://x/y"], ["s3a://x/y.log"]):
        assert "Spark reads it" in groupquake("report", *words).err
    monkeypatch.setattr(incident, "SMALL_BYTES", log.stat().st_size - 1)
    for place in (log, "-"):
        assert "Spark reads it" in groupquake("report", place).err
