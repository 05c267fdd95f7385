"""Breaks things on purpose, and puts them right again.

In: a validated experiment, a seed, and the place where the cluster is to live.
Out: the plan, a running cluster, faults that were injected, verified and healed, and the journal.
It may import `scenarios` and `kafka_protocol`; members are reached over the control channel.
"""
