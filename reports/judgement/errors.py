"""The errors of a run's evidence, and of its analysis: each is one line."""


class EvidenceError(Exception):
    """Evidence or a place that cannot be read or written: what, where, and what to do."""


class ExecutionError(Exception):
    """An analysis that broke off, through no fault of the evidence: what, where, what to do."""
