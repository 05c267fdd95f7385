"""Our part of Locust's page: a start form, runs of experiments and their verdicts.

In: the load session, and what a user of the page chooses. Out: pages, and runs started.
"""
