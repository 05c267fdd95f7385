"""Exit codes, which scripts may rely on, and the errors that end with them."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import click

from chaos.errors import ChaosError


class Exit(IntEnum):
    """The exit codes of `groupquake`; the documentation has their table."""

    PASS = 0
    FAIL = 1
    UNKNOWN = 2
    NOT_STEADY = 3
    ABORTED = 4
    NOT_HEALED = 5
    USAGE = 64
    UNAVAILABLE = 69
    INTERNAL = 70
    NOT_AUTHORIZED = 77


OF_VERDICT = {"pass": Exit.PASS, "fail": Exit.FAIL, "unknown": Exit.UNKNOWN}


class NotSteadyError(Exception):
    """The cluster, the load or the steady state did not come up: no fault was injected."""


class NotAuthorizedError(ChaosError):
    """The brokers refuse the user, or what a run needs; the message says whom, or which rights."""


class NotHealedError(Exception):
    """A fault is still open; the message says which."""


class AbortedError(BaseException):
    """A signal ended the command. It is no Exception, so that no handler of errors catches it.

    `signal` is the signal's name, `left` says what state remains.
    """

    def __init__(self, signal: str, left: str = "interrupted") -> None:
        super().__init__(f"{signal}: {left}")
        self.signal = signal


@contextmanager
def writing(what: str, advice: str = "") -> Iterator[None]:
    """Raise UsageError for an OSError in the block: what cannot be written, why, what to do."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"{what} ({error.strerror}){advice}") from error
