"""The list of faults, and what each declares for plan, report and docs."""

from pathlib import Path

import pytest

import scenarios.faults
from scenarios.faults import KINDS, about
from scenarios.faults.catalogue import Entry, Key, catalogue

SHARED = {"__init__", "brokers", "catalogue", "declaration", "members", "net", "schedule"}


def entry(name: str) -> Entry:
    return next(entry for entry in catalogue() if entry.name == name)


def key(fault: str, name: str) -> Key:
    return next(key for key in entry(fault).keys if key.name == name)


def test_every_module_of_a_fault_is_in_the_list() -> None:
    modules = {path.stem for path in Path(scenarios.faults.__file__).parent.glob("*.py")}
    assert {kind.__module__.rpartition(".")[2] for kind in KINDS.values()} == modules - SHARED


def test_a_fault_has_the_texts_that_reports_need() -> None:
    assert {name for name in KINDS if KINDS[name].about.one_shot} == {
        "group.remove-members",
        "topic.add-partitions",
        "topic.delete",
        "coordinator.move",
    }
    processes = {name: kind.about.broker for name, kind in KINDS.items() if kind.about.broker}
    assert processes == {
        "broker.kill": "killed",
        "broker.stop": "stopped",
        "broker.restart": "stopped",
        "broker.pause": "paused",
        "disk.full": "killed",
    }
    assert all(
        name.startswith(("broker.", "disk.", "clock.")) == (about(name).hits == "broker")
        for name in KINDS
    )
    assert about("broker.teleport") is None


def test_reports_count_faults_with_an_s() -> None:
    assert [kind.about.noun for kind in KINDS.values() if kind.about.noun.endswith("s")] == []


@pytest.mark.parametrize("name", KINDS)
def test_the_catalogue_has_every_text(name: str) -> None:
    found = entry(name)
    texts = (found.about.targets, found.about.witness, found.about.expects, found.about.undo)
    assert all(text.endswith(".") and "  " not in text for text in (found.summary, *texts))
    assert all(key.text.endswith(".") for key in found.keys)
    assert found.keys[0].name == "at"


def test_the_catalogue_describes_the_values_of_a_key() -> None:
    assert key("member.restart", "down_for") == Key(
        "down_for", "duration", True, None, "How long each member stays away."
    )
    assert key("member.restart", "becomes").kind == "`dynamic` or {instance_id: text}"
    assert key("member.kill", "allow_empty").default == "false"
    assert key("group.remove-members", "instances").kind == "`all` or list of text"
    assert key("topic.add-partitions", "to").kind == "number"
    assert key("broker.kill", "target").kind.startswith("`controller` or {coordinator-of: text}")
