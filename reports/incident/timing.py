"""Time constants of incidents: each with its unit, what it bounds, and where it is from."""

NEAR_MS = 1_000.0
"""How long before "Preparing" the line of its member may stand: releases write the two in either
order (Java, and Scala before 3.0: the member's first). Seen on idle brokers: 0 to 2 ms."""
STORM_MS = 300_000.0
"""Within which time `STORM_REBALANCES` of a group are a storm. Rolling out a new release to a group
of dynamic members is one; two restarts in five minutes (four rebalances) are not."""
BACK_MS = 1_000.0
"""How far a clock may jump back within a file unnoticed: threads write their lines out of order."""
COARSE_MS = 1_000.0
"""The step of times in logs that have no fractions of seconds, as Strimzi's from Kafka 4 on."""
SESSION_MS = 45_000.0
"""The clients' default for `session.timeout.ms` from Kafka 3.0 on (KIP-735)."""
SESSIONS_MS = (10_000.0, 30_000.0, 45_000.0, 60_000.0, 120_000.0, 300_000.0, 600_000.0)
"""For which sessions, beside the one asked for, the estimate is made: the default before 3.0 and
that from 3.0 on, what containers take to start again (30 s to 2 min), and machines (5, 10 min)."""
SHORTEST_DRAWN_MS = 1_000.0
"""The least time that a page draws."""
