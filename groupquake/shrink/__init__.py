"""Shrinking: to the smallest experiment that fails for the same root.

In: an experiment, and what tells whether one fails: forecasts, or runs on a cluster. Out: smaller
experiments, made as `--set` makes them. It may import what `groupquake` may.
"""
