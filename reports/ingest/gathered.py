"""Places as people give them in; the files that are read out.

Both engines read regular files of UTF-8, plain or in one of the `FORMS`. All else that is on this
machine is first written into a temporary folder as such: a pipe, an archive (`logs.tar!/a.log`),
UTF-16 (PowerShell's `>`), and what is packed otherwise than its name says.
"""

import io
import sys
import tarfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, cast

from reports.ingest.uris import SCHEME
from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import BEGINS, DAMAGED, FORMS, unpacked_pieces
from scenarios.regular_files import open_regular

STDIN = ("-", "/dev/stdin")
DEEPEST = 4
"""How many times a file may be packed: `logs.tar.gz` with `server.log.1.gz` in it is three."""
RATIO = 10
"""How many bytes of a log a packed one may have, for one of its own: what is known unread."""
_HEAD = 512
_PIECE = 1 << 20
_TAR = slice(257, 262), b"ustar"
_OF_TEXT = 0.4
"""Which share of the bytes of UTF-16 at least are zeros, every other one, in a log of English."""


@dataclass
class Gathered:
    """The files by their paths, with the names that people know; `uris` are elsewhere.

    `bytes` is about how much there is to read, unpacked.
    """

    names: dict[Path, str] = field(default_factory=dict)
    uris: list[str] = field(default_factory=list)
    bytes: int = 0


@contextmanager
def gathered(places: Sequence[str]) -> Iterator[Gathered]:
    """Give the files at paths and URIs; what had to be written for it is deleted in the end.

    `-` is the standard input. Raises EvidenceError where a place cannot be read, or has no file.
    """
    with TemporaryDirectory(prefix="groupquake-") as temporary:
        found, into = Gathered(), (Path(temporary) / f"{number}.log" for number in count())
        for place in places:
            try:
                _gather(place, found, into)
            except OSError as error:
                why = error.strerror or error
                raise EvidenceError(f"{error.filename or place}: {why}") from error
        if not found.names and not found.uris:
            raise EvidenceError(f"{', '.join(places)}: no file is there; give brokers' server.log")
        yield found


def _gather(place: str, found: Gathered, into: Iterator[Path]) -> None:
    path = Path(place.removeprefix("file:"))
    if place in STDIN:
        written = _unpacked(sys.stdin.buffer, "standard input", into)
    elif SCHEME.match(place) and not (place.startswith("file:") and path.exists()):
        found.uris.append(place)
        return
    elif path.is_fifo():
        with path.open("rb") as pipe:
            written = iter([*_unpacked(pipe, place, into)])
    else:
        written = chain.from_iterable(map(partial(_regular, into=into), _files(path)))
    for name, file in written:
        if file not in found.names:
            found.names[file] = name
            found.bytes += file.stat().st_size * (RATIO if file.suffix in FORMS else 1)


def _files(path: Path) -> Iterable[Path]:
    """List a file, or those of a folder; what begins with a dot or `_` is left out, as by Spark."""
    if not path.is_dir():
        return [path]
    shown = lambda file: not any(part[0] in "._" for part in file.relative_to(path).parts)
    return sorted(file for file in path.rglob("*") if not file.is_dir() and shown(file))


def _regular(path: Path, into: Iterator[Path]) -> Iterator[tuple[str, Path]]:
    with open_regular(path) as file:
        packed = _packed(file.read(_HEAD))
        file.seek(0)
        head = next(unpacked_pieces(file, packed, []), b"")
        named = next((end for end in FORMS if path.name.endswith(end)), "")
        if packed == named and not (_packed(head) or _is_tar(head) or _encoding(head)):
            yield str(path), path
            return
        file.seek(0)
        yield from _unpacked(file, str(path), into)


def _packed(head: bytes) -> str:
    return next((end for end, begin in BEGINS.items() if head.startswith(begin)), "")


def _is_tar(head: bytes) -> bool:
    place, word = _TAR
    return head[place] == word


def _encoding(head: bytes) -> str:
    """Return which UTF-16 a file is by its first bytes, with or without a mark; empty for others.

    One that is cut after an odd byte is read as the other one: the zeros are what counts.
    """
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16-le" if head.startswith(BOM_UTF16_LE) else "utf-16-be"
    head = head[:_HEAD]
    zeros = {"utf-16-le": head[1::2].count(0), "utf-16-be": head[::2].count(0)}
    of = max(zeros, key=lambda name: zeros[name])
    return of if sum(zeros.values()) == zeros[of] > _OF_TEXT * len(head) else ""


class _Pieces(io.RawIOBase):
    """Pieces of a file as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        given = self._rest or next(self._pieces, b"")
        size = min(len(given), len(buffer))
        buffer[:size], self._rest = given[:size], given[size:]
        return size


def _file_of(*pieces: Iterable[bytes]) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Pieces(chain(*pieces)), _PIECE))


def _unpacked(
    file: BinaryIO, name: str, into: Iterator[Path], deep: int = 0
) -> Iterator[tuple[str, Path]]:
    """Write what a file holds into files; yield the name and path of each."""
    head = file.read(_HEAD)
    pieces, damage = chain([head], iter(partial(file.read, _PIECE), b"")), list[str]()
    if (packed := _packed(head)) and deep < DEEPEST:
        unpacked = unpacked_pieces(_file_of(pieces), packed, damage)
        yield from _unpacked(_file_of(unpacked), name, into, deep + 1)
    elif _is_tar(head) and deep < DEEPEST:
        yield from _members(_file_of(pieces), name, into, deep, damage)
    else:
        yield _written(pieces, name, next(into), damage)
        return
    if damage:
        yield _written([], name, next(into), damage)


def _members(
    file: BinaryIO, name: str, into: Iterator[Path], deep: int, damage: list[str]
) -> Iterator[tuple[str, Path]]:
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                if (content := archive.extractfile(member)) is not None:
                    opened = cast(BinaryIO, content)
                    yield from _unpacked(opened, f"{name}!/{member.name}", into, deep + 1)
    except tarfile.TarError as error:
        damage.append(f"the archive is cut off or damaged ({error})")


def _written(pieces: Iterable[bytes], name: str, path: Path, damage: list[str]) -> tuple[str, Path]:
    """Write a file as UTF-8; return its name and path. What cannot be read ends it as a damage."""
    with path.open("wb") as target:
        try:
            target.writelines(_as_utf8(pieces, damage))
        except (tarfile.TarError, EOFError) as error:
            damage.append(f"the archive is cut off ({error})")
        target.writelines(b"\n" + DAMAGED + what.encode() for what in damage)
    damage.clear()
    return name, path


def _as_utf8(pieces: Iterable[bytes], damage: list[str]) -> Iterator[bytes]:
    pieces = iter(pieces)
    first = next(pieces, b"")
    encoding = _encoding(first)
    if not encoding:
        yield from chain([first], pieces)
        return
    decoder = getincrementaldecoder(encoding)("replace")
    for piece in chain([first], pieces):
        yield decoder.decode(piece).encode("utf-8", "replace")
    if decoder.getstate()[0]:
        damage.append(f"the {encoding.upper()} text is cut off within a character")
