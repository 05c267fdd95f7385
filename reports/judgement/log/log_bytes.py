"""The lines of logs as bytes: of bounded length, and those of a packed file up to a damage."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

LONGEST = 16 << 20
"""How many bytes a line of evidence may have: several times what a request with its answer has."""
SHOWN = 300  # how many bytes are left of a longer one
TOO_LONG, DAMAGED = b"\0longer than 16 MiB: ", b"\0the rest of the file is not there: "
"""What stands before them, and a line that ends a damaged file: no line of evidence begins so, so
that its reader rejects and counts it as any other that was altered."""
_PIECE = 1 << 20  # how many bytes are unpacked at once
_ZSTD_PIECE = 1 << 14  # a piece in which it is damaged is lost


Pieces = Callable[[BinaryIO], Iterator[bytes]]


def _plain(file: Any) -> Iterator[bytes]:
    """Yield pieces of a file as it stands."""
    return iter(partial(file.read1, _PIECE), b"")


def _streams(unpacker_of: Callable[[], Any], file: BinaryIO) -> Iterator[bytes]:
    """Yield what the streams of a packed file hold; zeros may follow.

    `bz2.open` and `lzma.open` end without an error at a second stream that is damaged.
    """
    given = file.read(_PIECE)
    while any(given[:1]):
        unpacker = unpacker_of()
        while not unpacker.eof:
            if unpacker.needs_input and not (given := given or file.read(_PIECE)):
                raise EOFError
            yield unpacker.decompress(given if unpacker.needs_input else b"", _PIECE)
            given = b""
        given = unpacker.unused_data or file.read(_PIECE)


def _zstandard(file: BinaryIO) -> Iterator[bytes]:
    """Yield what the frames of a Zstandard file hold."""
    import pyarrow as pa  # noqa: PLC0415 (it loads slowly)

    unpacker = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    try:
        yield from iter(partial(unpacker.read, _ZSTD_PIECE), b"")
    except OSError as error:
        if "Truncated" in str(error):
            raise EOFError from error
        raise


FORMS: dict[str, tuple[str, Pieces]] = {
    ".gz": ("gzip", lambda file: _plain(gzip.open(file))),  # noqa: SIM115 (it ends with the file)
    ".bz2": ("bzip2", partial(_streams, bz2.BZ2Decompressor)),
    ".xz": ("xz", partial(_streams, lzma.LZMADecompressor)),
    ".zst": ("zstd", _zstandard),
}
"""The names of the forms that are read, and what unpacks them, by the ends of files' names."""
BEGINS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0", ".zst": b"(\xb5/\xfd"}
"""How files of the FORMS begin."""
OTHERS = (".deflate", ".lz4", ".snappy")
"""Ends of names by which Spark would unpack a file, if it can; such a file is read as it stands."""


def shortened(line: bytes) -> bytes:
    """Return a line, or what stands for one that is too long."""
    return line if len(line) <= LONGEST else TOO_LONG + line[:SHOWN]


def unpacked(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the `shortened` lines of a file of some name, up to a damage, which comes last.

    A file in none of the FORMS is not packed.
    """
    damage = list[str]()
    yield from lines_of(unpacked_pieces(file, name, damage))
    yield from (DAMAGED + what.encode() for what in damage)


def unpacked_pieces(file: BinaryIO, name: str, damage: list[str]) -> Iterator[bytes]:
    """Yield pieces of a file of some name, unpacked, up to a damage, which is put in words."""
    form, pieces = next((FORMS[end] for end in FORMS if name.endswith(end)), ("", _plain))
    try:
        yield from pieces(file)
    except EOFError:
        damage.append(f"the {form} file is cut off")
    except (zlib.error, lzma.LZMAError, OSError) as error:
        damage.append(f"the {form} file is damaged ({error})")


def pieces_between(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield, in pieces, the lines of a file whose first byte lies in [start, end)."""
    at = max(start - 1, 0)
    file.seek(at)
    has_begun, last = start == 0, b"\n"
    while at < end or (has_begun and last != b"\n"):
        is_beyond = at >= end
        piece = file.read(_PIECE if is_beyond else min(_PIECE, end - at))
        if not piece:
            return
        at += len(piece)
        if not has_begun:
            _, newline, piece = piece.partition(b"\n")
            has_begun = bool(newline)
        elif is_beyond:
            line, newline, _ = piece.partition(b"\n")
            piece = line + newline
        if has_begun and piece:
            last = piece[-1:]
            yield piece


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut pieces of a file into lines; no more is kept of them than the longest line has."""
    rest = too_long = b""
    for piece in pieces:
        if too_long:
            _, end, piece = piece.partition(b"\n")  # noqa: PLW2901 (the rest of it)
            if not end:
                continue
            yield too_long
            too_long = b""
        *whole, rest = (rest + piece).split(b"\n")
        yield from map(shortened, whole)
        if len(rest) > LONGEST:
            rest, too_long = b"", shortened(rest)
    if rest or too_long:
        yield rest or too_long
