"""Child processes that end when this process ends, however it ends.

As a program, `dies_with_parent.py SIGNAL PARENT PROGRAM ARGUMENT…` asks the kernel to send the
signal when the parent ends, then replaces itself by the program.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def dying_with_parent(number: signal.Signals, program: str = sys.executable) -> list[str]:
    """Return the beginning of the command line of a program, by default Python.

    The program gets the signal when this process ends, even by SIGKILL (prctl PR_SET_PDEATHSIG).
    The kernel watches the thread that starts the child, so start it from the main thread.
    """
    return [sys.executable, "-I", "-S", __file__, str(int(number)), str(os.getpid()), program]


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when its parent ends, or exit if it has."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # the parent ended before the prctl call
        sys.exit(1)


def main() -> None:
    """Ask for the signal at the parent's end, and replace this process by the program."""
    number, parent, *command = sys.argv[1:]
    end_with(int(parent), int(number))
    try:
        os.execv(command[0], command)  # noqa: S606 (a list, no shell)
    except OSError as error:  # such as a script whose interpreter is not there
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
