"""Injects faults, verifies and heals them.

In: a validated experiment, a seed, and where the cluster runs.
Out: the plan, a running cluster, faults that were injected, verified and healed, and the journal.
It may import `scenarios` and `kafka_protocol`; members are reached over the control channel.
"""
