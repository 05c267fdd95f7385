"""The stall detector, on a broker that stalls on demand."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from groupquake.fuzz.connections import StallDetector
from groupquake.fuzz.timing import STILL_S
from kafka_protocol.errors import Error

PATIENCE_S = 30.0


class Broker:
    """Answers Heartbeat v0 on one connection, and nothing while it is to be still."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.moves = threading.Event()
        self.moves.set()
        self.answered = 0

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        client, _ = self.listener.accept()
        with client, client.makefile("rb") as frames:
            while length := frames.read(4):
                (correlation,) = struct.unpack_from(
                    ">i", frames.read(*struct.unpack(">i", length)), 4
                )
                self.moves.wait(PATIENCE_S)
                client.sendall(struct.pack(">iih", 6, correlation, Error.UNKNOWN_MEMBER_ID))
                self.answered += 1


@contextmanager
def broker() -> Iterator[Broker]:
    it = Broker()
    thread = threading.Thread(target=it.serve, daemon=True)
    thread.start()
    yield it
    it.moves.set()
    thread.join(PATIENCE_S)
    it.listener.close()


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_stall_is_known_while_it_lasts_and_afterwards() -> None:
    with broker() as it, StallDetector("127.0.0.1", it.port) as stall_detector:
        until(lambda: it.answered > 0)
        it.moves.clear()
        still_s = time.monotonic()
        until(lambda: bool(stall_detector.stalls(still_s, time.monotonic())))
        it.moves.set()
        answered = it.answered
        until(lambda: it.answered > answered + 1)
        moved_s = time.monotonic()
        begun_s, ended_s = stall_detector.stalls(still_s, moved_s)[0]
        assert still_s <= begun_s
        assert begun_s + STILL_S < ended_s <= moved_s


def test_stalls_are_cut_to_the_given_times() -> None:
    stall_detector = StallDetector("127.0.0.1", 0, _stalls=[(10.0, 20.0)])
    assert stall_detector.stalls(15.0, 17.0) == [(15.0, 17.0)]
    assert stall_detector.stalls(0.0, 12.0) == [(10.0, 12.0)]
    assert stall_detector.stalls(19.9, 25.0) == []


def test_a_response_that_comes_meanwhile_hides_no_stall() -> None:
    class Stalls(list[tuple[float, float]]):
        def __iter__(self) -> Iterator[tuple[float, float]]:
            yield from tuple(super().__iter__())
            stall_detector._note_response()

    began_s = time.monotonic() - 1.0
    stall_detector = StallDetector("127.0.0.1", 0, _stalls=Stalls(), _last_response_s=began_s)
    assert stall_detector.stalls(began_s, float("inf"))[0][0] == began_s
