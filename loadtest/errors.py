"""The package's exceptions."""


class LoadtestError(Exception):
    """The load cannot do what was asked; the message says what, where and what to do."""


class WorkerGoneError(LoadtestError):
    """The Locust worker that ran a member is gone, and the member with it."""
