"""Judgement: the lines of a broker or the evidence of a group in; rows, findings, a verdict out.

Pure functions without Spark, Arrow and HTML. They know `kafka_protocol`, `reference_coordinator`
and `scenarios`; `recording` judges a run folder in one process. The rooms: what
a run folder says (`run`), lines of logs (`log`), who coordinated (`coordinators`), what is missing
(`missing`), observed beside expected (`timelines`), clients beside brokers (`clients`). `group`
judges a group with them, `verdict` the run.
"""
