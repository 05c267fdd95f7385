"""One load in several Locust processes: a master with the leases, and workers with the clients.

In come the leases, commands and histories that Locust's messages carry; out come one table of
members, one control channel and one history. It may know Locust's runners and the load's clients;
what it needs of an experiment reaches a worker by a message, never by a path of the master's.
"""
