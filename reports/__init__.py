"""Reports: a run's evidence in; tables, a verdict and a page out.

Three parts, and `analysis`, which calls them for a run folder: `ingest` (Spark: log files to
tables), `judgement` (pure: what the rows mean, up to the verdict) and `page` (HTML and JUnit XML).
The package knows `kafka_protocol`, `reference_coordinator` and `scenarios`.
"""

from reports.judgement.errors import EvidenceError

__all__ = ["EvidenceError"]
