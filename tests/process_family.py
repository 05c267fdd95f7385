"""The processes below one. A process may end while it is looked at."""

from contextlib import suppress

import psutil


def below(pid: int, word: str) -> list[psutil.Process]:
    """Return the children of a process, and theirs, with `word` in their command line.

    Those that end right now are left out.
    """
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a zombie is one, too
            if word in " ".join(process.cmdline()):
                found.append(process)
    return found
