"""Nights: many experiments on many Kafka releases in one command, and their results over time.

In: a suite, a YAML file. Out: run folders, `night.json`, JUnit XML and a page of all nights.
Every run is a process of its own; this package may import all of ours but runs no cluster itself.
"""
