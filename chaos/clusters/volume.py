"""A small file system of its own for the data of a broker, which can be filled up, or stall.

It is an ext4 file system in a file beside the mount point, on a loop device. That needs root.
"""

import errno
import fcntl
import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos.clusters.commands import kill, start
from chaos.errors import ClusterError
from chaos.timing import UNMOUNT_S
from chaos.waiting import until

SIZE_MB = 128
DATA = "data"
"""The folder of a broker that holds its data: the mount point."""
_IMAGE, _FILLER = "data.ext4", "filler"
_FIFREEZE, _FITHAW = 0xC0045877, 0xC0045878
"""linux/fs.h: writes to a frozen file system wait until it is thawed."""
_CHUNK, _BLOCK = 65_536, 4_096
_PROBE = "probe"
_WRITES = (
    "while began=$(date +%s%N); do printf x >{0}; rm {0};"
    " echo $((($(date +%s%N) - began) / 1000000)); sleep 0.05; done"
)
"""Writes again and again, and prints how many milliseconds each took."""


class Volume:
    """The data of one broker, below the broker's folder. Every method raises ClusterError."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / DATA
        self._image = folder / _IMAGE

    def make(self) -> None:
        """Make the file system and mount it, empty."""
        if os.geteuid() != 0:
            raise ClusterError(
                "disk.full and disk.slow mount a file system for the data of each broker, which"
                " needs root; run as root, or leave these faults out"
            )
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(SIZE_MB * 1024 * 1024)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self.path))
        (self.path / "lost+found").rmdir()  # Kafka takes every folder for a partition

    def fill(self) -> None:
        """Leave no free byte."""
        with (self.path / _FILLER).open("wb", buffering=0) as filler:
            with _errors(self.path, but=errno.ENOSPC):
                os.posix_fallocate(filler.fileno(), 0, max(self.free_bytes, 1))
            for chunk in (_CHUNK, _BLOCK):  # what is left beside the file's own records
                with _errors(self.path, but=errno.ENOSPC):
                    filler.seek(0, os.SEEK_END)
                    while filler.write(bytes(chunk)):
                        continue
            os.fsync(filler.fileno())

    def free(self) -> None:
        """Free what `fill` took."""
        (self.path / _FILLER).unlink(missing_ok=True)

    @property
    def free_bytes(self) -> int:
        """How much can be written."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def freeze(self) -> None:
        """Let every write wait, until `thaw`."""
        _control(self.path, _FIFREEZE, errno.EBUSY)

    def thaw(self) -> None:
        """Let writes go on, if it is frozen."""
        _control(self.path, _FITHAW, errno.EINVAL)

    def remove(self) -> None:
        """Unmount it and delete its file, if it is there."""
        if not until(self._is_unmounted, UNMOUNT_S):  # a process may be writing still
            _run("umount", str(self.path))
        self._image.unlink(missing_ok=True)

    def _is_unmounted(self) -> bool:
        """Try to unmount it."""
        if self.path.is_mount():
            self.thaw()
            with suppress(ClusterError):
                _run("umount", str(self.path))
        return not self.path.is_mount()


class SlowDisk:
    """Freezes and thaws a disk, and measures how long writes of ours take meanwhile."""

    def __init__(self, volume: Volume, name: str) -> None:
        self.longest_ms = 0
        """How long a write took at most."""
        self.failure: ClusterError | None = None
        """Why it could not be frozen again."""
        self._volume = volume
        self._name = name
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._writer: subprocess.Popen[bytes] | None = None

    def stall(self, stall_s: float, period_s: float) -> None:
        """Freeze it for the first part of each period, from now on."""
        self._volume.freeze()
        # A process of its own: one that waits for a frozen disk cannot be killed.
        self._writer = start(
            _WRITES.format(shlex.quote(str(self._volume.path / _PROBE))),
            self._volume.path.parent.parent,
            subprocess.PIPE,
            subprocess.DEVNULL,
        )
        self._threads = [
            threading.Thread(target=self._stall, args=(stall_s, period_s), name=self._name),
            threading.Thread(target=self._measure, args=(self._writer,), name=self._name),
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let writes go on for good."""
        self._over.set()
        self._volume.thaw()
        if self._writer is not None:
            kill(self._writer)
        for thread in self._threads:
            thread.join()
        self._volume.thaw()  # it may have been frozen in between

    def write_ms(self) -> int:
        """Write a byte; return how long that took."""
        began = time.monotonic()
        (self._volume.path / _PROBE).write_bytes(b"x")
        (self._volume.path / _PROBE).unlink()
        return round((time.monotonic() - began) * 1000)

    def _stall(self, stall_s: float, period_s: float) -> None:
        try:
            while True:
                self._over.wait(stall_s)
                self._volume.thaw()
                if self._over.wait(period_s - stall_s):
                    return
                self._volume.freeze()
        except ClusterError as error:
            self.failure = error

    def _measure(self, writer: "subprocess.Popen[bytes]") -> None:
        with writer:
            assert writer.stdout is not None
            for took_ms in writer.stdout:
                self.longest_ms = max(self.longest_ms, int(took_ms))


def thaw_all(brokers: Path) -> None:
    """Thaw the volumes below a folder: what waits for one cannot be killed."""
    for folder in _mounted(brokers):
        Volume(folder).thaw()


def remove_all(brokers: Path) -> tuple[str, ...]:
    """Unmount the volumes below a folder; return their mount points."""
    removed = []
    for folder in _mounted(brokers):
        volume = Volume(folder)
        volume.remove()
        removed.append(f"mount {volume.path}")
    return tuple(removed)


def _mounted(brokers: Path) -> Sequence[Path]:
    """Return the folders of brokers whose data is a mounted volume."""
    places = (line.split()[1] for line in Path("/proc/mounts").read_text().splitlines())
    paths = [Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), one)) for one in places]
    root = brokers.resolve()
    return [path.parent for path in paths if path.name == DATA and path.parent.parent == root]


def _control(path: Path, request: int, already: int) -> None:
    with _errors(path, but=already):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(folder, request, 0)
        finally:
            os.close(folder)


@contextmanager
def _errors(path: Path, *, but: int) -> Iterator[None]:
    """Turn an OSError into a ClusterError about a path; one of the number `but` ends the block."""
    try:
        yield
    except OSError as error:
        if error.errno != but:
            raise ClusterError(f"{path}: {error.strerror}") from error


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ClusterError(f"{command[0]} cannot be run ({error.strerror}); install it") from error
    if done.returncode != 0:
        why = " ".join(done.stderr.split())[:200] or f"exit code {done.returncode}"
        raise ClusterError(f"{' '.join(command)}: {why}")
