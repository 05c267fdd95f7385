"""Shrinking: from an experiment that fails to the smallest schedule that fails for the same root.

In: an experiment, and what tells whether one fails: forecasts, or runs on a cluster. Out: smaller
and smaller experiments, made as `--set` makes them. It knows all that `groupquake run` knows.
"""
