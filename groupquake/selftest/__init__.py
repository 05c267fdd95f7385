"""Tests of groupquake itself: random requests to real brokers, and coordinators with a rule broken.

In: a Kafka release, or recorded evidence. Out: what the oracle explains, and what it misses.
It may import all packages of ours.
"""
