"""A load in several Locust processes: a master, and workers that run the clients that they lease.

In: clients, and control commands for members. Out: one history, and what of it is missing.
All goes as Locust's own messages, whose names stand here.
"""

LEASE, LEASED, RELEASE = "groupquake-lease", "groupquake-leased", "groupquake-release"
"""A user asks for a client of a `kind`, and gets its configuration by the `number` of its question;
what it returns is a `name`."""
COMMAND, ANSWER = "groupquake-command", "groupquake-answer"
"""A control command for a member, and the reply to it by its `number`."""
END = "groupquake-end"
"""The master ends the load: workers close their clients."""
DISMISS = "groupquake-dismiss"
"""The master lost this worker, which is final, or never had it: it ends at once, as in a crash."""
HISTORY, HISTORY_END = "groupquake-history", "groupquake-history-end"
"""`lines` of a worker's history from the number `first` on, `sent_ms` by its clock; and how many it
wrote in all."""
