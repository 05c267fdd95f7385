"""Time constants of the analysis: each with its unit, what it bounds, and where it is from."""

from reference_coordinator.timing import LEARNS_MS

# Lines and clocks of brokers

CLOCK_AHEAD_MS = 50.0
"""How far a printed time may be ahead of the nano clock; more is not this broker's.
Test: test_broker_log.py."""
CLOCK_BEHIND_MS = 1_000.0
"""How far a printed time may be behind the nano clock: log4j 2 reads the time first, then the nano
clock, and the thread may be suspended between (`MutableLogEvent.initTime`, log4j-core 2.25.3).
Test: test_broker_log.py."""
SHOWN_OFF_MS = 1_200.0
"""How far the time that a line shows may be from its own, about (`broker_log`)."""
ARRIVAL_ERROR_MS = 40.0
"""How much too late a reconstructed arrival may be: the line is written after the clock is read.
Measured: 20 to 35 ms on a loaded machine.
Test: test_bounds_of_time.py."""
HANDLING_DELAY_MS = 1_000.0
"""How long a request may be queued and looked at on a broker that works, and how long after that
it may wait for the thread of its group (Java). Measured on 71 runs, 44,298 requests: 104 ms in 99 %
of them, 373 ms in 99.9 %; longer on brokers that had just started. A line may show 1 s more
(`reference_coordinator.timing.WAITED_MS`)."""
LOGGED_WITHIN_MS = 100.0
"""How soon a broker that goes on writes the line of a request that it had answered before."""
CLOCK_OFF_MS = 1_000.0
"""How far a broker's clock may be from the journal's. Where both run on one machine they are the
same; in the recorded runs brokers end 25 to 10,000 ms after the teardown began, and at most 250 ms
after it was noted as over.
Test: test_skews.py."""
JOURNAL_BACK_MS = 3_600_000.0
"""How far the clock may go back between two entries: they are written in the order of time.
Test: test_run_folder.py."""
KILL_NOTED_MS = 1_000.0
"""How long after the journal's entry of a kill a broker's last line may be stamped.
Test: test_gaps.py."""
UNLOGGED_MS = 2_000.0
"""How long before its end, or its kill, a broker may have answered what it never logged, and its
client may tell of.
Test: test_comparison.py."""
TAP_ENDS_MS = 1_000.0
"""How long before its last line the tap may have missed a request: both end at about one time.
Test: test_witnesses.py."""
SAME_ANSWER_MS = 1_000.0
"""How much earlier or later the tap may see an answer than the broker logs it, where addresses
differ behind a NAT; numbers alone begin anew with each connection.
Test: test_deliveries.py."""

# Disturbances

NEVER_MS = 1e15
"""Stands for the time of what never comes: infinity, which neither JSON nor SQL has."""
NEVER_ENDS_MS = 4e12
"""Later than any run."""
CATCHING_UP_MS = 10_000
"""How long after a broker is back writes may fail because too few replicas are in sync.
Test: test_line_fields.py."""
REPLICATES_MS = 1_000.0
"""How long before a broker is cut off what it wrote may not have reached its replicas. These fetch
at once where the machine lets them; so long may a request take, too (`Tolerance.reply`)."""
STANDSTILL_MS = 100.0
"""A shorter standstill explains nothing: it is within every slack.
Test: test_standstills.py."""
SAMPLED_UNTIL_MS = 2_000.0
"""How long before the teardown the samples may end: one comes each second, and the sampler notes at
its end, which comes later, how late it is.
Test: test_machine_log.py."""
RESUMES_MS = 100.0
"""How long before the entry that a pause is healed its broker may go on: the entry follows the
signal, by less than a turn of the controller's loop.
Test: test_bounds_of_timers.py."""
SAME_PAUSE_MS = 5.0
"""How far the ends of one pause may lie apart in two sources: a collection, and its safepoint."""
AROUND_BUSY_MS = 1_000.0
"""How far from a busy time a machine may be busy, too: it is sampled once a second.
Test: test_disturbances.py."""
LATE_UNDER_PRESSURE_MS = 1_000.0
"""How much later than their bounds timers, answers and lines may be for want of a CPU, beside the
longest time for which the runner was late. Measured: within the bounds, at a load of 40 on two
cores, so that this is twice the largest of them. Test:
test_late_machine.py."""
MATTERS_MS = 250.0
"""A standstill that is shorter is not worth telling of: half of the slack of a timer.
Test: test_disturbances.py."""
WRITES_FAIL_MS = 3_000.0
"""From which length on a standstill of one broker may make writes of another fail at once: half of
the shortest session with which a cluster finds a broker dead (ZooKeeper 6 s, KRaft 9 s). They may
fail until it has caught up, as after a fault.
Test: test_line_fields.py."""
WAITS_MS = 5_000.0
"""How long a request may wait that waits for no member: `offsets.commit.timeout.ms`."""
HANDLED_MS = 1_000.0
"""How long before a step the request may have come that it follows from.
Test: test_hanging_groups.py."""

# Rebalances and coordinators

EARLY_MS = 10.0
"""Error of a reconstructed instant, in ms.
Test: test_compare.py."""
TIMER_SLACK_MS = 500.0
"""How late a coordinator may act on what is due, in ms; the oracle's bound for timers, too. So much
later than its line the end of a phase may seem to come, as its requests may be logged late.
Measured: 474 ms, at a load of 40 on two cores.
Test: test_line_fields.py."""
LINE_LATE_MS = 200.0
"""How much earlier than its line the end of a phase may seem to come. Measured: 129 ms, at a load
of 40. A broker that stands still then writes the line later by that.
Test: test_compare.py."""
PAIR_MS = 1_000.0
"""How far apart in time rows left over may be and still pair, in ms.
Test: test_compare.py."""
SAME_MOMENT_MS = 5.0
"""The lines of one event lie within this time."""
FENCED_LATE_MS = 15.0
"""How much later than the answer a fenced line may seem. Measured on 58 lines: 0.5 ms; never
earlier than the request.
Test: test_fenced_lines.py."""
METADATA_KNOWN_MS = LEARNS_MS + TIMER_SLACK_MS
"""How far the lines of two brokers about one election may lie apart, and how long before its line a
broker may refuse writes: it tells its replicas of an election before its coordinator. How long a
coordinator may take to learn that a topic was deleted.
Test: test_epoch_ends.py."""
LOAD_LINE_LATE_MS = 50.0
"""How much later than the first answers of a coordinator its line about the load may be."""
LOADS_MS = 5_000.0
"""How long before an answer that a broker loads the group a Heartbeat without an error may have
been answered by the same load, if nothing else is answered in between.
Test: test_wire_epochs.py."""
MARKS_NEAR_MS = 5_000.0
"""How near an answer tells: further than the windows of two requests reach.
Test: test_wire_marks.py."""
LOADED_BEFORE_MS = 1_000.0
"""How long before its first request a group is taken to be loaded, where nothing tells when.
Test: test_wire_epochs.py."""
EVENT_APART_MS = 0.001
"""How far from the request that shows it an event is placed.
Test: test_wire_epochs.py."""
DECIDED_MS = 1_000.0
"""How long before an answer that waited its coordinator may have decided it (`Tolerance.reply`).
Test: test_wire_epochs.py."""

# Clients

SEEN_MS = 250.0
"""How much earlier than its answer an event may seem. Measured on 2,740 events: 0.5 ms, and 65 ms
later at most; a broker of a busy machine may write the answer's line late.
Test: test_comparison.py."""
OLD_ANSWER_MS = 500.0
"""How long before an event its answer is, usually: several times what was measured.
Test: test_comparison.py."""
TAIL_MS = 5_000.0
"""How long before its end a client may be answered what it does not report any more: closing takes
that long where a JoinGroup waits. While it ends it reports nothing, and on a busy machine that
takes longer: 5,096 ms were seen.
Test: test_comparison.py."""
LOOKED_FOR_MS = 2_000.0
"""How long after an event its answer is looked for before the event is judged.
Test: test_comparison.py."""
GOES_ON_MS = 1_000.0
"""How long after an answer that fences it a client may be answered something else.
Test: test_comparison.py."""
NOTED_MS = 1_000.0
"""How long before its note a member may have processed a record, about: it notes them once a second
(`loadtest.history`).
Test: test_records.py."""
OWNED_TWICE_MS = 100.0
"""How long two owners may seem to be at one time: what Java members print is read late. Measured
on 41 handovers of librdkafka members: never at all.
Test: test_owners.py."""
OWNED_TWICE_PROVEN_MS = 1_000.0
"""From which time on two owners are proven; the load may be that late to read what members say.
Test: test_owners.py."""
DOWN_MS = 500.0
"""How long after it was stopped a request of a client may arrive: it was in flight, or its line was
written late. `chaos` allows as much. Measured on 132 restarts and kills: the last one arrives 2 ms
before the journal has the member down. A broker that stands still reads it later by that.
Test: test_absences.py."""
TAKEN_UP_MS = 50.0
"""How soon a broker that has answered a request reads the next one of its connection. It reads none
before: what a client sent waits there for its turn, also when the client is gone.
Test: test_absences.py."""
UP_MS = 50.0
"""How much earlier than the journal has it a fault may end: its entries are written between.
Test: test_absences.py."""
TOPIC_KNOWN_MS = 10_000.0
"""How long after the first JoinGroup of a group a leader's broker may not know a topic: it was
created just before, on a machine that may be busy. A topic is known with all its partitions.
Test: test_assignments.py."""
RETENTION_MS = 60_000.0
"""The shortest `offsets.retention.minutes`, after which offsets of an empty group are deleted.
Test: test_fetched_offsets.py."""
PACE_MS = 2_000.0
"""How long a client that runs may send nothing. Heartbeats come every 500 to 700 ms, commits every
second, in the experiments that add partitions.
Test: test_pace.py."""
PARTITIONS_NOTICED_MS = 5_000.0
"""How long clients that run may take to notice new partitions, and to be assigned them; or five
times as long as they may keep metadata. Measured: 1,864 ms at most, where they keep it for 1 s.
Test: test_pace.py."""
LOOP_MS = 1_000.0
"""In which time many JoinGroups are a loop: Kafka's client waits 100 ms between two.
Test: test_rules.py."""
UNASKED_MS = 10_000.0
"""In which time several JoinGroups without a cause are sent needlessly.
Test: test_rules.py."""
WIRE_LATE_MS = 1_000.0
"""How long after a fault on the wire what that held up may still arrive.
Test: test_on_the_wire.py."""
AFTER_MS = 100.0
"""How long after an answer a request may still arrive that was sent before it.
Test: test_rules.py."""
LEARNED_MS = 1_000.0
"""How long a client may take until all its threads know of an answer.
Test: test_on_the_wire.py."""
COMMITTED_MS = 5_000.0
"""How long after its last poll a client may still commit: auto.commit.interval.ms by default.
Test: test_membership.py."""
CLOSES_MS = 1_000.0
"""How much earlier than its history says a clean close may begin."""

# The analysis itself

REACHED_WITHIN_S = 10
"""How long a master of Spark may take to accept a connection: Spark itself tries for minutes."""
JVM_STARTS_S = 300.0
"""How long Spark's JVM may take to start on this machine. Measured: 2 s, and the whole session 98 s
at a load of 40 on two cores."""
SUBMITTED_S = 900.0
"""The same where the user configures Spark: `spark-submit` first fetches `spark.jars.packages`."""
JVM_ENDS_S = 5.0
"""How long PySpark may take to see that a JVM was killed: it looks every 100 ms."""
CACHED_S = 7 * 86_400
"""How long a file that nobody uses stays."""
