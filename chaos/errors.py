"""The package's exceptions. The text says what, where and what to do, in one line."""


class ChaosError(Exception):
    """A fault could not be planned, injected or undone."""


class TargetError(ChaosError):
    """A target selects nothing, or names what does not exist."""


class TopicsError(ChaosError):
    """The topics of a run could not be created."""


class LoadGoneError(ChaosError):
    """The load process has ended, and with it every member that it ran."""


class WorkerGoneError(LoadGoneError):
    """The worker that ran a member has ended, and the member with it; others run on."""


class UnreachableError(ChaosError):
    """No broker answered; a removal may have been carried out nevertheless."""


class RunGoesOnError(ChaosError):
    """A run that still goes on cannot be healed."""


class ClusterError(Exception):
    """A cluster operation failed."""


class UnsupportedError(ClusterError):
    """Clusters of that release, or with that coordinator, are not supported."""
