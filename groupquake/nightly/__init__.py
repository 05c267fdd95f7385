"""Nights: many experiments on many Kafka releases in one command, and how they went over time.

In goes a suite, a YAML file; out come run folders, `night.json`, JUnit and a page over all nights.
Every run is a process of its own; this package may import all of ours but runs no cluster itself.
"""
