"""The package's exceptions. The text says what, where and what to do, in one line."""

from typing import ClassVar


class ChaosError(Exception):
    """A fault could not be planned, injected or undone."""


class TargetError(ChaosError):
    """A target selects nothing, or names what does not exist."""


class TopicsError(ChaosError):
    """The topics of a run could not be created."""


class GoneError(ChaosError):
    """What a fault acted on is gone, and what the fault did with it; `left` says so."""

    left: ClassVar[str]


class LoadGoneError(GoneError):
    """The load process has ended, and with it every member that it ran."""

    left = "nothing to undo: the load process is gone, and its members with it"


class WorkerGoneError(LoadGoneError):
    """The worker that ran a member has ended, and the member with it; others run on."""

    left = "nothing to undo: the worker of the load is gone that ran the member"


class UnreachableError(ChaosError):
    """No broker answered; a removal may have been carried out nevertheless."""


class RefusedError(ChaosError):
    """What somebody asked for by hand is not done; the text says why, and what to do."""


class RunGoesOnError(ChaosError):
    """A run that still goes on cannot be healed."""


class ClusterError(ChaosError):
    """A cluster operation failed."""


class UnsupportedError(ClusterError):
    """Clusters of that release, or with that coordinator, are not supported."""
