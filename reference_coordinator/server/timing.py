"""Times and sizes of the served oracle, each with its unit, reason and source."""

KEPT_BATCHES = 1_000
"""How many batches of records a partition keeps: it is for members that are there."""
SESSION_MS = 9_000
"""After so long without a broker its controller gives it up (`broker.session.timeout.ms`)."""
BACKLOG = 4_096
"""How many connections wait to be taken: all members may come at once."""
