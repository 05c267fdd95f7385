"""Foresight: an experiment in virtual time, before anything is started.

In: an experiment, its plan, the rules of a release. Out: how often each group rebalances in each
phase, and for which reason, as intervals; how long its members stop, and partitions lie idle.
It works the very plan and the very fault classes of a run, on members and brokers of its own.
"""
