"""Judgement: the lines of a broker or the evidence of a group in; rows, findings, a verdict out.

Pure functions without Spark, Arrow and HTML. They know `kafka_protocol`, `reference_coordinator`
and `scenarios`; `recording` judges a run folder in one process.
"""
