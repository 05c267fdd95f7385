"""Evidence of any size: run folders whose logs no broker wrote.

In: a number of groups, a size, a mix of clients and faults, a seed. Out: a run folder as a run
writes it. Each group is simulated by the oracle's own `step`, so that nothing in its log is wrong.
"""
