"""However a stream is cut, its frames come out byte for byte."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.tap.frames import FrameBuffer, FrameError, Head, correlation_id_of, framed, head_of


@given(st.lists(st.binary(max_size=40), max_size=12), st.data())
def test_frames_come_out_as_they_went_in(payloads, data):
    frames = [framed(payload) for payload in payloads]
    stream = b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    buffer, out = FrameBuffer(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += buffer.feed(stream[start:end])
    assert out == frames


@pytest.mark.parametrize("client_id", ["member-1", "", None, "café"])
def test_head_of_a_request(client_id):
    text = (client_id or "").encode()
    length = -1 if client_id is None else len(text)
    frame = framed(struct.pack(">hhih", 12, 4, 77, length) + text + b"\0rest")
    assert head_of(frame) == Head(12, 4, 77, client_id)


def test_correlation_id_of_an_answer():
    assert correlation_id_of(framed(struct.pack(">i", -3) + b"more")) == -3


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"\x16\x03\x01\x02\x00\x01", "TLS"), (b"GET / HTTP/1.1", "bytes"), (b"\xff" * 4, "-1")],
)
def test_other_protocols_are_named(data, what):
    with pytest.raises(FrameError, match=what):
        list(FrameBuffer().feed(data))


def test_too_short():
    with pytest.raises(FrameError):
        head_of(framed(b"\0\1"))
    with pytest.raises(FrameError):
        correlation_id_of(framed(b"\0\1"))
