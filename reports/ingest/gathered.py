"""Places as people give them in; the files that are read out.

Both engines read regular files of UTF-8, plain or in one of the `FORMS`. All else that is on this
machine is first written into a temporary folder as such: a pipe, an archive (`logs.tar!/a.log`),
UTF-16 (PowerShell's `>`), and what is packed otherwise than its name says.
"""

import shutil
import sys
import tarfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from reports.ingest.uris import SCHEME
from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import BEGINS, DAMAGED, FORMS, unpacked_pieces
from scenarios.regular_files import open_regular

STDIN = ("-", "/dev/stdin")
DEEPEST = 4
"""How many times a file may be packed: `logs.tar.zst` with `server.log.1.gz` in it is three."""
RATIO = 10
"""How many bytes of a log a packed one may have, for one of its own: what is known unread."""
_HEAD, _TAR = 512, slice(257, 262)
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
            path = Path(place.removeprefix("file:"))
            if SCHEME.match(place) and not (place.startswith("file:") and path.exists()):
                found.uris.append(place)
                continue
            try:
                for name, file in _read(place, path, into):
                    if file not in found.names:
                        found.names[file] = name
                        found.bytes += file.stat().st_size * (RATIO if file.suffix in FORMS else 1)
            except OSError as error:
                why = error.strerror or error
                raise EvidenceError(f"{error.filename or place}: {why}") from error
        if not found.names and not found.uris:
            raise EvidenceError(f"{', '.join(places)}: no file is there; give brokers' server.log")
        yield found


def _read(place: str, path: Path, into: Iterator[Path]) -> Iterator[tuple[str, Path]]:
    if place in STDIN:
        yield from _logs("standard input", _copied(sys.stdin.buffer, next(into)), into)
    elif path.is_fifo():
        with path.open("rb") as pipe:
            yield from _logs(place, _copied(pipe, next(into)), into)
    else:
        for file in _files(path):
            if not str(file).isascii() and str(file) != str(file).encode(errors="replace").decode():
                raise EvidenceError(f"{str(file)!a}: its name is not UTF-8; rename it")
            yield from _logs(str(file), file, into)


def _files(path: Path) -> Iterable[Path]:
    """List a file, or those of a folder; what begins with a dot or `_` is left out, as by Spark."""
    if not path.is_dir():
        return [path]
    shown = lambda file: not any(part[0] in "._" for part in file.relative_to(path).parts)
    return sorted(file for file in path.rglob("*") if not file.is_dir() and shown(file))


def _copied(file: IO[bytes], path: Path) -> Path:
    with path.open("wb") as target:
        shutil.copyfileobj(file, target)
    return path


def _logs(name: str, path: Path, into: Iterator[Path], deep: int = 0) -> Iterator[tuple[str, Path]]:
    """Yield the names and paths of the logs in a file, written anew where engines need it."""
    damage, named = list[str](), path.suffix if path.suffix in FORMS else ""
    with open_regular(path) as file:
        packed = _packed(file.read(_HEAD))
        file.seek(0)
        head = next(unpacked_pieces(file, packed, []), b"")[:_HEAD]
        is_tar, encoding = head[_TAR] == b"ustar", _encoding(head)
        if deep == DEEPEST or (packed == named and not (_packed(head) or is_tar or encoding)):
            yield name, path
            return
        if packed or named:
            file.seek(0)
            path = next(into)
            with path.open("wb") as target:
                target.writelines(unpacked_pieces(file, packed, damage))
    if is_tar:
        yield from _members(name, path, into, deep, damage)
        path = next(into)
    elif encoding:
        path = _as_utf8(path, encoding, next(into), damage)
    if damage:
        with path.open("ab") as target:
            target.writelines(b"\n" + DAMAGED + what.encode() for what in damage)
    if encoding or (is_tar and damage):
        yield name, path
    elif not is_tar:
        yield from _logs(name, path, into, deep + 1)


def _packed(head: bytes) -> str:
    return next((end for end, begin in BEGINS.items() if head.startswith(begin)), "")


def _encoding(head: bytes) -> str:
    """Return which UTF-16 a file is by its first bytes, with or without a mark; empty for others.

    One that is cut after an odd byte is read as the other one: the zeros are what counts.
    """
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16-le" if head.startswith(BOM_UTF16_LE) else "utf-16-be"
    zeros = {"utf-16-le": head[1::2].count(0), "utf-16-be": head[::2].count(0)}
    of = max(zeros, key=lambda name: zeros[name])
    return of if sum(zeros.values()) == zeros[of] > _OF_TEXT * len(head) else ""


def _as_utf8(path: Path, encoding: str, target: Path, damage: list[str]) -> Path:
    with (
        path.open(encoding=encoding, errors="ignore", newline="") as text,
        target.open("w", encoding="utf-8", newline="") as written,
    ):
        shutil.copyfileobj(text, written)
    if path.stat().st_size % 2:
        damage.append(f"the {encoding.upper()} text is cut off within a character")
    return target


def _members(
    name: str, path: Path, into: Iterator[Path], deep: int, damage: list[str]
) -> Iterator[tuple[str, Path]]:
    """Yield the logs in the files of an archive, up to where it is cut off."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    file = next(into)
                    with suppress(tarfile.ReadError):  # the next member is not there, either
                        _copied(content, file)
                    yield from _logs(f"{name}!/{member.name}", file, into, deep + 1)
    except tarfile.TarError as error:
        damage.append(f"the archive is cut off or damaged ({error})")
