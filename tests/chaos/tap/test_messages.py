"""However a stream is cut, its frames come out byte for byte; and frames that wait on their way."""

import asyncio
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.tap.exchange import Exchange
from chaos.tap.lane import Lane
from chaos.tap.rules import Rule, RuleTable
from kafka_protocol.apis import ApiKey
from kafka_protocol.frames import FrameBuffer, FrameError, Head, correlation_id_of, head_of


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@given(st.lists(st.binary(max_size=40), max_size=12), st.data())
def test_frames_come_out_as_they_went_in(payloads, data):
    frames = [framed(payload) for payload in payloads]
    stream = b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    buffer, out = FrameBuffer(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += buffer.feed(stream[start:end])
    assert out == frames


def test_heads_of_requests_and_of_an_answer():
    for client_id in ("member-1", "", None, "café"):
        text = (client_id or "").encode()
        length = -1 if client_id is None else len(text)
        frame = framed(struct.pack(">hhih", 12, 4, 77, length) + text + b"\0rest")
        assert head_of(frame) == Head(12, 4, 77, client_id)
    assert correlation_id_of(framed(struct.pack(">i", -3) + b"more")) == -3
    for read in (head_of, correlation_id_of):
        with pytest.raises(FrameError):
            read(framed(b"\0\1"))


def test_other_protocols_are_named():
    for data, what in (
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"GET / HTTP/1.1", "bytes"),
        (b"\xff" * 4, "-1"),
    ):
        with pytest.raises(FrameError, match=what):
            list(FrameBuffer().feed(data))


def exchange(number: int) -> Exchange:
    return Exchange(Head(ApiKey.HEARTBEAT, 4, number, "a"), 1, frozenset())


def lane_to(take: Callable[[object], object], rules: RuleTable, *, is_open: bool) -> Lane:
    """A lane whose frames, and its end, are taken."""
    deliver, end = lambda one, _: take(one), lambda: take("end")
    return Lane("to-broker", rules, deliver, end, lambda _: None, is_open=is_open)


@pytest.mark.parametrize("removed", [False, True])
def test_what_follows_a_delayed_frame_waits_also_once_the_rule_is_removed(removed: bool) -> None:
    """Seen: an answer that came 400 ms after `net.delay` was healed reached its client 1 s late."""
    delayed, behind, after = exchange(1), exchange(2), exchange(3)

    async def run() -> list[object]:
        passed: list[object] = []
        both = asyncio.Event()

        def take(one: object) -> None:
            passed.append(one)
            if one is behind:
                both.set()

        rules = RuleTable()
        rules.add("r1", Rule("delay", client_ids=("a",), latency_ms=50.0))
        lane = lane_to(take, rules, is_open=True)
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


def test_what_waits_for_its_connection_was_not_held_up_and_its_end_comes_after_it() -> None:
    one, passed = exchange(1), []
    lane = lane_to(passed.append, RuleTable(), is_open=False)
    lane.push(one, b"1")
    lane.finish(one)
    assert passed == []
    lane.open()
    assert passed == [one, "end"]
    assert not one.waited
