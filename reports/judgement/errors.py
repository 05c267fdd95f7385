"""What can be wrong with evidence before anything is computed."""


class EvidenceError(Exception):
    """A run folder that cannot be read: what, where, and what to do, in one line."""
