"""Reports: a run's evidence in; tables, a verdict and a page to read out.

Everything that decides a verdict is computed by Spark from the brokers' logs, with the reference
coordinator run inside it; the same command gives the same verdict from stored evidence alone.
It knows `reference_coordinator` and `scenarios`.
"""

from reports.errors import EvidenceError

__all__ = ["EvidenceError"]
