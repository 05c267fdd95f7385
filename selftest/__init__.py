"""Tests of groupquake that are programs: `python -m selftest COMMAND`.

In: recorded evidence, a profile, a size, or an hour of a machine. Out: which broken rules and which
lies are caught, what the rules themselves break, evidence of any size, and what our processes grow
by. It may import all packages of ours; none of them imports it, and no wheel has it.
"""
