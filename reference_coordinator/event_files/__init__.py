"""Event files and counterexamples: evidence of a group as text, for tools and for people.

In go JSON lines of the form `groupquake-events/1`, or a violation that a replay found; out come
evidence to replay, or as few requests as show the violation.
It knows the oracle and its replay.
"""
