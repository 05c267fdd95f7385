"""Times of members and brokers in virtual time, in ms, each from least to most.

What Kafka and the machine leave open is drawn from between them. They are those of the recorded
runs of the library on a busy machine of two cores.
"""

# Members

REQUEST_MS = (0.3, 20.0)
"""One way of a request: a millisecond on the loopback, more where a core is wanted by others."""
NEXT_MS = (0.2, 300.0)
"""From a response to the next request: librdkafka's threads and the application's poll, which
revokes partitions in between; the most where many members share a busy process."""
RETRY_MS = (100.0, 1_000.0)
"""From an error to the next try: `retry.backoff.ms`, and librdkafka's own look once a second."""
COMES_MS = (20.0, 500.0)
"""From the order to start until a member of the load joins: connection, and coordinator found."""
PROGRAM_COMES_MS = (300.0, 3_000.0)
"""The same where a member is a process of its own, a JVM for example."""
RECONNECTS_MS = (50.0, 3_000.0)
"""From the load of a group until a member has found its new coordinator."""
NOTICES_POLL_MS = (0.0, 1_500.0)
"""How long after `max.poll.interval.ms` a member gives up: librdkafka looks twice a second."""
CLOSES_MS = (0.0, 300.0)
"""In the end all members close at the same time, so far apart."""
LATE_MS = (0.0, 2_500.0)
"""By how much the last member of a group may come later than the others as the load starts: beyond
`group.initial.rebalance.delay.ms` of the library it costs a rebalance of its own."""

# Brokers

ELECTED_MS = (50.0, 3_000.0)
"""From the end of a leader until another loads its partitions; for one that was killed, after
`broker.session.timeout.ms`. More if it was the controller, too."""
MOVES_MS = (30.0, 600.0)
"""From the end of a leader that shuts down, or hands over, until the next has loaded."""
LOADS_MS = (2.0, 60.0)
"""How long a group is loaded."""
STARTS_MS = (3_000.0, 14_000.0)
"""From the order to start a broker until it takes requests; a JVM on a busy machine."""
STOPS_MS = (500.0, 12_000.0)
"""How long a broker takes to shut down."""
SESSION_MS = 9_000
"""Kafka's default of `broker.session.timeout.ms`."""

# The run

SEEN_MS = (200.0, 4_000.0)
"""From the steady state until it is seen, and the first phase begins."""
FOUND_MS = 1_000.0
"""From the start of the brokers until members come: every group has been loaded by then."""
ENDS_MS = (100.0, 4_000.0)
"""From the last closing of a member until the coordinators have given up their groups for good: 0.1
to 2.6 s in 44 recorded runs of KRaft, at loads up to 17 on two cores. Sessions may end meanwhile.
"""
ENDS_WITH_ZOOKEEPER_MS = (4_000.0, 20_000.0)
"""The same with ZooKeeper, whose brokers of 2.x await their controller as they shut down."""
LOOKS_MS = 200.0
"""How often the simulated plan looks whether something that it waits for is there."""
BACK_MS = 60_000.0
"""How long it waits for a member or a broker to be back, as a run does."""
