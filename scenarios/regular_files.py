"""Files where others may write, too: regular ones are opened alone, and no link is written to."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

INPUT_BYTES = 1 << 20
"""The largest file that a person writes: an experiment, client properties, an adapter."""


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError for what is not a regular file, as for any other.

    A FIFO, a device, a socket or a folder is refused without waiting for it; links are followed.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, at_most: int = INPUT_BYTES) -> bytes:
    """Return the content of a file of at most so many bytes. Raises OSError if it is larger."""
    with open_regular(path) as file:
        content = file.read(at_most + 1)
    if len(content) > at_most:
        raise OSError(errno.EFBIG, f"larger than {at_most >> 20} MiB", str(path))
    return content


def replace_file(path: Path, content: bytes) -> None:
    """Put a new file in the place of a name: it is whole, or it is not there. Raises OSError."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        with part.open("xb") as file:  # never through somebody's link
            file.write(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def append_regular(path: Path) -> BinaryIO:
    """Open a file for appending: a new one in place of a link, a FIFO and all else. Raises OSError.

    What has another name, too, is somebody else's file.
    """
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            path.unlink()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o666), "ab")
