"""Whether the checker tells a coordinator with one rule broken from Kafka's.

In: recorded runs and recorded sequences of real brokers, and the mutants of the reference
coordinator. Out: for each mutant, what catches it told as a lie, and as the oracle.
It may know everything, as all of `groupquake` may; Spark has no part in it.
"""
