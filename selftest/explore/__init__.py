"""Explores a small group exhaustively: every course of events up to a depth, by a profile's rules.

In go a profile, a few member processes and a depth; out come counts and the invariants that break.
It knows the oracle: what the rules themselves break, a release with these rules breaks.
"""
