"""Soak: many members and a fault a minute, for long, while our own processes are sampled.

In: how long, how many members, how often a fault, and a seed.
Out: the verdicts of the runs, and whether threads, descriptors and memory of each process of ours
stay flat. It may know everything; a run is started as a user starts it, by the command line.
"""
