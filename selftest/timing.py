"""Times of the tests that are programs, each with its unit, reason and source."""

# Lies: an answer or a line that is moved further than Kafka's freedoms go. In ms.
MOVED_MS = 1_500.0
"""By how much a line is moved: by more than what waits for it may be late."""
AGAIN_MS = 2_000.0
"""How much later a line stands a second time."""
HELD_MS = 2_000.0
"""How much later an answer is sent: what a member sends next leaves no room for more."""
HELD_ALONE_MS = 2_500.0
"""How much later an answer is sent that others overtake."""
REFUSED_MS = 10_000.0
"""How long every request is refused: longer than the coordinator moves in a failover."""
OF_ONE_WRITE_MS = 50.0
"""The answers that wait for one write are sent within this time."""
SOON_MS = 1_000.0
"""How soon a commit follows another that overtakes it, and how long after the begin of an outage
its effects are there."""

# Traces that are played on a broker. In ms.
ANSWERED_MS = 3_000.0
"""Within what time an answer comes that a trace has: a busy machine holds up a broker."""
EXPIRES_MS = 1_000.0
"""How late a timer of the broker may expire: its wheel ticks every 200 ms, on a busy machine."""

# Soak. In s.
SAMPLED_EVERY_S = 2.0
"""How often processes are sampled: a fault of 8 s shows in four samples."""
SETTLES_S = 20.0
"""How long after a fault was verified connections and threads may still come and go."""
AWAY_S = 8
"""How long members are away: two heartbeat intervals show, and a session is longer."""
LONGEST_S = 25
"""How long a fault may take until it is healed and verified, on a busy machine."""
HOUR_S = 3_600.0
"""Growth is given for each hour."""

# Synthesized runs, since the first broker's start. In ms.
ELECTED_MS = 900.0
"""When the coordinators are elected."""
LOADING_MS = 8.0
"""How long a partition without records is loaded, as in recorded runs."""
READY_MS = 1_200.0
"""When every partition is loaded, and clients may come."""
STOPS_AFTER_MS = 250.0
"""How long after the last request the brokers stop: longer than a request takes."""
FORMATION_MS = 400.0
"""The time in which the clients of a group start: within the initial delay."""
RETRY_MS = 120.0
"""How long a client waits after an error of the coordinator: about `retry.backoff.ms`."""
LINE_US = 45
"""How long the coordinator takes for a line, in µs, as in recorded runs."""
WRITE_MS = 2.0
"""How long a broker takes to store a record, where a log is synthesized from a recorded one."""
SENT_MS = 0.15
"""How long it takes there to send a response."""
