"""Times of the fuzzer: how long its clients and their timers wait.

Without another source, a time is so short that sequences of a few seconds reach it often, and so
long that the broker of a busy machine keeps it.
"""

# A sequence. In ms.
SESSIONS_MS = (350, 600, 600, 1000, 1500, 3000, 5000)
"""Session timeouts of processes: some expire within a sequence, some do not."""
REBALANCES_MS = (500, 900, 900, 1500, 2500)
"""Rebalance timeouts of processes."""
SHORT_MS, LONG_MS = 350, 2_500
"""A session timeout that expires while others wait, and a longer timeout."""
PATIENCE_MS = (0, 4, 25, 25, 25, 60, 60, 120)
"""How long a process waits for a response before the next request; with 0, requests overlap."""
AROUND_MS = (-150, -60, 60, 200, 700)
"""When requests are sent, relative to the expiry of a timer, which may be late."""
OVERDUE_MS = 650
"""How late a timer may expire in the oracle's view."""
JOINING_MS, SYNCING_MS = 250, 120
"""How long all processes wait for a join phase, and for an assignment."""
LONGEST_MS = 12_000
"""A sequence that lasts longer gets no further action."""
LAST_WORDS_MS = 1_000
"""How long the last responses are awaited."""

# A campaign. In s.
PROGRESS_EVERY_S = 5.0
"""How often a campaign says how far it is."""
BEAT_EVERY_S = 0.05
"""How often the stall detector sends a heartbeat."""
STILL_S = 0.25
"""A longer time without a response is a stall: timers that expire then are late."""
ANSWER_WITHIN_S = 60.0
"""How long the stall detector waits until the broker counts as gone."""
READY_WITHIN_S = 60.0
"""How long a broker may take to create its topics and to coordinate groups."""
ASK_EVERY_S = 0.2
"""How often a broker that is not ready is asked."""
