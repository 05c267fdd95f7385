"""Child processes that do not outlive this one, whatever ends it.

As a program: `tether.py SIGNAL PARENT PROGRAM ARGUMENT…` has the kernel send that signal when the
parent ends, and becomes that program.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def dying_with_parent(number: signal.Signals, program: str = sys.executable) -> list[str]:
    """Return the beginning of a program's command line, Python's or another's.

    The program gets a signal when we end, even if SIGKILL ends us (prctl PR_SET_PDEATHSIG). What
    ends is the thread that starts the child, so start it from the main one.
    """
    return [sys.executable, "-I", "-S", __file__, str(int(number)), str(os.getpid()), program]


def main() -> None:
    """Tie this process to its parent, and become what was asked for."""
    number, parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != int(parent):  # it ended before the kernel was told
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 (a list, no shell)


if __name__ == "__main__":
    main()
