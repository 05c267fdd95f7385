"""Time constants of the oracle and its replay, in ms: what each bounds, and where it is from.

None is taken from the evidence that it judges. What differs between releases or brokers, such as
session timeouts, is in `Settings` and `Profile`.
"""

from dataclasses import replace

from reference_coordinator.frozen import frozen_dataclass

# The coordinator

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait in JoinGroup (a constant in every release since 2.2)."""
EXPECTED_WITHIN_MS = 300_000
"""How long a group waits for expected instance ids, unless an operator says (never released): as
long as a client with the default `max.poll.interval.ms` waits in JoinGroup."""
COMMITTED_WITHIN_MS = 1_000
"""How long a group's first record, or its tombstone, may take until it is committed (a bound;
brokers gather records for `group.coordinator.append.linger.ms`, at most 10 by default)."""

# The evidence


@frozen_dataclass(frozen=True, slots=True)
class Tolerance:
    """How exact the evidence is, in ms.

    early: reading error of a request's reconstructed times (log line against response).
    timer: how late a timer may run out while its broker works. Measured when idle: 0 to 15 ms.
        Test: test_timers.py.
    line: how far from its step a coordinator line may be printed. Both are in one thread, under one
        lock. Measured on 71 runs: of 6,299 answers that a step with a line let go, one was sent
        11 ms before the line, the others at most 0.7 ms. Test: test_coordinator_epochs.py.
    reply: how long the broker may take from deciding an answer to having sent it.
        Test: test_replay.py.
    search: how many steps a search for another order may cost, for one stretch of overlaps.
    """

    early: float = 10.0
    timer: float = 500.0
    line: float = 15.0
    reply: float = 1_000.0
    search: int = 5_000

    def wider(self, by_ms: float) -> "Tolerance":
        """Return that of a broker that may be so much later with anything."""
        early, timer, line = self.early + by_ms, self.timer + by_ms, self.line + by_ms
        return replace(self, early=early, timer=timer, line=line, reply=self.reply + by_ms)


WHOLE_MS = 1.0
"""How much later than its answer a request's own line may seem: before 4.0 lines have whole ms.
Test: test_hints.py."""
ROUNDED_MS = 10.0
"""How far the times of a request in the log may be off, each being rounded."""
SUM_ERROR_MS = 1.0
"""Sums of times may be off by far less. What comes so close to a deadline is in no steady run."""

# Requests and coordinator lines

SEEMS_LATE_MS = 100.0
"""How long after its end a request may be logged on a busy machine. It seems to have come so much
too late; a line of the coordinator proves that it was there before. Test: test_timers.py."""
NEW_ID_SEEMS_LATE_MS = 1_000.0
"""The same where the line names an id that was made for this request, and so is no other's: as long
as an answer may take to be sent. 314 ms were seen on two cores with 27 processes waiting.
Test: test_timers.py."""
SEEMS_AFTER_LINE_MS = 160.0
"""How much later than its `earliest_ms` says a request may be logged. It seems to have come so much
too late. Measured: of 1,728 requests that left a line themselves, on 71 runs, six seem to have come
after it by then, the last one 115 ms after."""
WAITED_MS = 1_000.0
"""How much later than its `latest_ms` a request may be acted on, if a line shows that it was: it
waited for its turn. Measured: 451 ms on brokers that had just started."""
STEP_LASTS_MS = 600.0
"""How long after its first line a step may print another. 524 ms were seen between two lines of a
broker's first rebalance, at a load of 40. Test: test_line_instants.py."""
SEEN_AHEAD_MS = NEW_ID_SEEMS_LATE_MS + 2_000.0
"""How far ahead the evidence has to be known: as late as a line may come that tells when a request
was acted on, and as a timer may run out or an answer may be sent."""

# Coordinators that change

SETTLING_MS = 100.0
"""How long after it says that it has loaded a broker may still answer as one that loads (Scala)."""
LEARNS_MS = 500.0
"""How long a coordinator may take to learn that another one took its place, before the slack of all
that is due: a broker polls the metadata log, up to `KafkaRaftClient.MAX_FETCH_WAIT_MS`. Measured in
95 loads: at most 354 ms after its successor had finished loading."""
RECONNECTS_MS = 2_000.0
"""How much longer it may take a broker that lost its ZooKeeper's session, as while it was paused:
the client waits for 1 s where there is one server, and for up to 1 s before any reconnection
(`StaticHostProvider.next`, `ClientCnxn.startConnect`). Measured on 2.8.1 after three pauses: it
gave the partition up 1,763 to 1,839 ms after it went on."""
HELD_UP = 0.5
"""For which share of its timeout a broker must have stood still for a write to time out that the
evidence does not show: a write that began before, or follows a first time-out, needs less."""
