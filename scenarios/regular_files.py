"""Opening files that others may have made: regular ones, which can neither block nor never end."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError for what is not a regular file, as for any other.

    A FIFO, a device, a socket or a folder is refused without waiting for it; links are followed.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, at_most: int) -> bytes:
    """Return the content of a file of at most so many bytes. Raises OSError if it is larger."""
    with open_regular(path) as file:
        content = file.read(at_most + 1)
    if len(content) > at_most:
        raise OSError(errno.EFBIG, f"larger than {at_most >> 20} MiB", str(path))
    return content
