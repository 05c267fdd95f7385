"""Limits and waits of this package: of what a file may say, and of faults that are carried out."""

# What a file may say

MIN_SESSION_MS = 6_000
"""The brokers' default of `group.min.session.timeout.ms`."""
NOTICED_POLL_MS = 1_500
"""How long after `max.poll.interval.ms` a client may take to leave: librdkafka looks twice a
second, the Java client with every heartbeat; the last request is on its way then."""
LEAST_SKEW_MS = 500
"""A clock that is off by less may be a line that its broker wrote late."""
SHORTEST_SKEW_MS = 2_000
"""A broker notices that its clock was set within a second, and then its clock is read."""
FOUNDING_MS = 500
"""How long the first members of a wire script's group take to join, one after the other."""

# Access tokens

TOKEN_ANSWER_S = 10.0
"""For the answer of a token endpoint; without a reason, for what hangs."""
TOKEN_LIFE_S = 3_600
"""How long an unsecured token is valid by default, as librdkafka has it."""

# Faults that are carried out

FIRST_LOOK_S = 0.05
"""From the first look of a witness to the second."""
SLOWEST_LOOK_S = 0.5
"""From one look to the next in the end: hundreds of threads may look at once."""
LEAVE_LOGGED_MS = 5_000
"""A broker logs a request just after it has sent the response; this is for one that is busy."""
TOPIC_KNOWN_MS = 15_000
"""How long the last broker may take to learn that a topic has partitions with leaders, or none."""
MOVE_KNOWN_MS = 30_000
"""How long the last broker may take to learn of a new coordinator, and a member to find it."""
FROZEN_S = 0.1
"""Until the last thread of a broker has stopped: right after SIGSTOP, one request in sixty was
answered."""
BROKER_BACK_MS = 60_000
"""How long a broker may take to be in sync again, and to reach the others; after SIGKILL its old
lease expires first."""
FULL_DISK_ENDS_S = 60.0
"""How long a broker may go on without a free byte: it ends when it writes, and a block may have
room left."""
CLOCK_NOTICED_S = 10.0
"""How long a broker may take to notice that its clock was set; the library asks every second."""
CLOCK_POLL_S = 0.1
"""How often the clock of a broker is read until then."""
WIRE_BACK_MS = 30_000
"""From the removal of a rule until what waited has passed."""
WIRE_LOGGED_MS = 5_000
"""How long a broker may take to write the line of a request that it has answered."""
WIRE_PASSES_S = 10.0
"""How long the tap and a broker may take for a request that no rule hits."""
WIRE_TRIES = 3
"""How often a busy machine may answer another client as late as one that is delayed."""
