"""Differential fuzzing: random sequences of requests to a real broker, explained by the oracle.

In: a broker's address, its release, a seed. Out: event files, and for each sequence whether the
reference coordinator explains it. A sequence that it does not explain is reduced to a small one.
It uses the wire-level client (`loadtest.wire`) and the replay (`reference_coordinator.replay`).
"""
