"""Ingest: a run's log files in; tables in Parquet out.

Spark reads and writes here, and brings the rows of a broker or of a group together; what the rows
mean is decided in `reports.judgement`, the only part of `reports` that it knows.
"""
