"""Tests of groupquake itself: random requests to real brokers, and coordinators with a rule broken.

In go a Kafka release or recorded evidence; out comes what the oracle explains, and what it misses.
It knows every package of ours.
"""
