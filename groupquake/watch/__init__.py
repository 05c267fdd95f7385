"""Watching: the lines of brokers' logs as they are written, and what they tell of groups meanwhile.

In: files, commands and standard input. Out: counts and storms of groups, on a screen, as
metrics, and by a webhook. Lines are read and counted by `reports.incident`, as `report`
does; what requests tell, and so whether a rebalance was due, is not this package's business.
"""
