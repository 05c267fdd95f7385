"""The package's exception."""


class LoadtestError(Exception):
    """The load cannot do what was asked; the message says what, where and what to do."""
