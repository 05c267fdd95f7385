"""Lies in recorded runs: one answer, line or time changed, as a broker that is wrong would.

A mutant breaks a rule and writes what follows from it. A lie changes one place and nothing else, to
claim a freedom that Kafka leaves open further than it goes (`docs/trust.md`).
In: recorded runs. Out: for each lie, in how many runs it is found. It does not use Spark.
"""
