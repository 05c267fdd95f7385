"""Breaks things on purpose, and puts them right again.

In: a validated experiment, a seed, and the place where the cluster is to live.
Out: the plan, a running cluster, faults that were injected, verified and healed, and the journal.
It may import `scenarios` and nothing else of ours, but for the form in which brokers before 2.8
write a request down (`reports.grammar`); members are reached over the control channel.
"""
