"""The error of a run folder that cannot be read."""


class EvidenceError(Exception):
    """A run folder that cannot be read: what, where, and what to do, in one line."""
