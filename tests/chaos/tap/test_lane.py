"""Frames that wait on one way of a connection."""

import asyncio

import pytest

from chaos.tap.exchange import Exchange
from chaos.tap.frames import Head
from chaos.tap.lane import Lane
from chaos.tap.rules import Rule, RuleTable
from kafka_protocol.apis import ApiKey


def exchange(number: int) -> Exchange:
    return Exchange(Head(ApiKey.HEARTBEAT, 4, number, "a"), 1, frozenset())


@pytest.mark.parametrize("removed", [False, True])
def test_what_follows_a_delayed_frame_waits_also_once_the_rule_is_removed(removed: bool) -> None:
    """Seen: an answer that came 400 ms after `net.delay` was healed reached its client 1 s late."""
    delayed, behind, after = exchange(1), exchange(2), exchange(3)

    async def run() -> list[Exchange]:
        passed: list[Exchange] = []
        both = asyncio.Event()

        def deliver(one: Exchange, _: bytes) -> None:
            passed.append(one)
            if one is behind:
                both.set()

        rules = RuleTable()
        rules.add("r1", Rule("delay", client_ids=("a",), latency_ms=50.0))
        lane = Lane("to-client", rules, deliver, lambda: None, lambda _: None, is_open=True)
        lane.push(delayed, b"1")
        if removed:
            rules.remove("r1")
        lane.push(behind, b"2")
        await asyncio.wait_for(both.wait(), 30)
        rules.remove("r1")
        lane.push(after, b"3")
        return passed

    assert asyncio.run(run()) == [delayed, behind, after]
    assert (delayed.waited, behind.waited, after.waited) == (True, True, False)


def test_what_waits_for_its_connection_alone_was_not_held_up() -> None:
    one = exchange(1)
    lane = Lane(
        "to-broker", RuleTable(), lambda *_: None, lambda: None, lambda _: None, is_open=False
    )
    lane.push(one, b"1")
    lane.open()
    assert not one.waited
