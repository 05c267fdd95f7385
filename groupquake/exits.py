"""Exit codes: what a script may rely on."""

from enum import IntEnum


class Exit(IntEnum):
    """See the README's table."""

    PASS = 0
    FAIL = 1
    UNKNOWN = 2
    NOT_STEADY = 3
    ABORTED = 4
    NOT_HEALED = 5
    USAGE = 64
    UNAVAILABLE = 69
    INTERNAL = 70


OF_VERDICT = {"pass": Exit.PASS, "fail": Exit.FAIL, "unknown": Exit.UNKNOWN}


class NotSteadyError(Exception):
    """Cluster, load or steady state did not come up, so nothing was broken and nothing proven."""


class NotHealedError(Exception):
    """Something is still broken; the message says what."""


class AbortedError(BaseException):
    """A signal ended the command. As it may come anywhere, no handler of errors is to take it.

    `signal` is its name, `left` says what it leaves behind.
    """

    def __init__(self, signal: str, left: str = "interrupted") -> None:
        super().__init__(f"{signal}: {left}")
        self.signal = signal
