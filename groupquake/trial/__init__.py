"""Trials: clients in, a matrix of clients and experiments out.

Each cell has two verdicts: whether the brokers kept the protocol, and whether the client did. All
experiments of a client run on one cluster, each in a group of its own. May know everything.
"""
