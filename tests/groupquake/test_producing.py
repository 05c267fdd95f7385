"""Producers that cannot produce are part of what a steady state has missed."""

import json
from pathlib import Path

import pytest

from groupquake.access import require_allowed
from groupquake.exits import NotAuthorizedError
from groupquake.runner import Producing
from scenarios import named

FULL = "produce: MSG_SIZE_TOO_LARGE"


def write(history: Path, *events: dict[str, object]) -> None:
    with history.open("a") as file:
        for event in events:
            file.write(json.dumps({"member": "producer-0", "kind": "producer"} | event) + "\n")


def test_a_producer_holds_once_a_record_of_it_is_acknowledged(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    producing = Producing(history, named("demo"))
    [first] = producing.observed()
    assert not first.holds
    write(
        history,
        {"event": "error", "error": FULL},
        {"event": "produced", "records": 0, "errors": 500},
        {"event": "produced", "records": 0, "errors": 45},
        {"event": "produced", "records": 7, "errors": 0, "kind": "dynamic", "member": "orders-1"},
    )
    [refused] = producing.observed()
    assert not refused.holds
    assert str(refused) == (
        f"producer-0 produces: records of orders is none (545 errors: {FULL}), not some"
    )
    write(history, {"event": "produced", "records": 1, "errors": 0})
    assert [one.holds for one in producing.observed()] == [True]
    write(history, {"event": "produced", "records": 0, "errors": 9})
    assert [one.holds for one in producing.observed()] == [True]


def test_who_sends_too_seldom_is_not_waited_for(tmp_path: Path) -> None:
    seldom = named("demo").override(["workload.producers.0.rate=0.01", "steady_state.within=1m"])
    assert Producing(tmp_path / "history.jsonl", seldom).observed() == ()


def test_the_right_of_a_producer_is_to_write(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    refused = {"event": "error", "error": "produce: TOPIC_AUTHORIZATION_FAILED"}
    write(history, refused, refused | {"left_out": 43})
    with pytest.raises(NotAuthorizedError) as error:
        require_allowed(history, "trial-")
    assert str(error.value).startswith("producer-0: TOPIC_AUTHORIZATION_FAILED: produce: ")
    assert "of 45 refusals); allow WRITE and DESCRIBE of each topic" in str(error.value)


def test_before_2_8_an_idempotent_producer_needs_a_right_of_the_cluster(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    refused = "Failed to acquire PID: Broker: Cluster authorization failed"
    write(history, {"event": "error", "error": refused})
    with pytest.raises(
        NotAuthorizedError,
        match=r"WRITE and .* IDEMPOTENT_WRITE of the cluster",
    ):
        require_allowed(history, "trial-")
