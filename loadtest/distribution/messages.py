"""The names of the Locust messages between master and workers, and how long an answer may take."""

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

LEASE_S = 10.0
"""How long a worker waits for a client before its user asks again."""
COMMAND_S = 27.0
"""How long a worker may take for a command: less than the runner waits for its answer."""
ROWS_S = 5.0
"""How long a worker may take to list its members."""
EVERY_S = 0.25
"""How often a worker sends its history, and the master looks which workers are there."""
LOST_S = 6.0
"""How long the master hears nothing of a worker before it has lost it."""
