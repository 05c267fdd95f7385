"""Checks that the oracle catches every mutant: a reference coordinator with one rule broken.

In: recorded runs and fuzz sequences of real brokers, and the mutants. Out: for each mutant, how
many synthesized logs of it fail, and how much real evidence contradicts it as the oracle.
It may import all packages of ours; it does not use Spark.
"""
