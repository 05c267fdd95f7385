"""The time constants of the load: what each bounds, and why it has this value."""

# Members

POLL_EVERY_S = 0.015
"""The time between two polls of librdkafka: with 10 to 20 ms, assignments are seen as early as by a
thread."""
WIRE_POLL_EVERY_S = 10.0
"""How often Locust's user comes by a member of `wire`, which needs no polls: thousands add up."""
TASK_S = 0.75
"""How long one Locust task polls; a task costs more than a poll. --stop-timeout waits for one."""
LEASE_EVERY_S = 0.1
"""How often a user asks for a client while there is none."""
COMMIT_ANSWER_S = 5.0
"""How long a close waits for the response to a commit before the consumer ends unclosed.

A consumer does not close before a coordinator has responded to a pending commit; it may never
respond (librdkafka 2.16)."""
LEAVE_S = 5.0
"""How long a clean close of `wire` waits for the answer to LeaveGroup, as other clients do."""
PROGRAM_CLOSE_S = 15.0
"""How long a program may take to close, with all its processes; docs/clients.md promises it."""
FREEZE_S = 10.0
"""How long a signal may take to reach all threads: 1.6 s were seen at a load of 90 on two cores."""
LOOK_EVERY_S = 0.01
"""How often it is looked whether a signal has reached all threads, or the page is served."""
FLUSH_S = 5.0
"""How long a producer's close waits for unacknowledged records before it discards them."""
PARTITIONS_EVERY_S = 5.0
"""How often a producer asks how many partitions its topic has: new ones get records soon after."""
PARTITIONS_ANSWER_S = 2.0
"""How long a producer waits for that answer; its close waits for it, too."""
QUIET_MS = 1_000.0
"""How long further errors of a kind are only counted after a line of the history, and what a member
processed is collected after one."""

# The whole load

REACHED_S = 5.0
"""How long a broker may take to answer before a load starts: connections with TLS and SASL, too."""
STARTED_S = 5.0
"""How long the page waits with its answer to Start until the start has begun."""

SPAWN_RATE = 20
"""Members a second that Locust starts, while their clients are librdkafka's."""
WIRE_SPAWN_S = 20
"""How long Locust takes to start all members with the client `wire`."""
CLOSE_ALL_S, CLOSES_A_S = 30.0, 50
"""How long a load may take to close, and how many members it closes a second besides.

7,200 took more than 30 s at a load of 25 on two cores; a LeaveGroup may queue behind a JoinGroup
for 5 s. A load that is ended earlier leaves a history without their ends."""
LAG_CHECK_S = 0.05
"""How often the delay of gevent's hub is measured; a line of the history has a second's worst."""
JOURNAL_EVERY_S = 1.0
"""How often the telemetry reads what was appended to the journal."""

# Workers

LEASE_ANSWER_S = 10.0
"""How long a worker waits for a client before its user asks again."""
COMMAND_ANSWER_S = 27.0
"""How long a worker may take for a command: less than the runner waits (chaos.members, 30 s)."""
ROWS_ANSWER_S = 5.0
"""How long a worker may take to list its members."""
WORKERS_EVERY_S = 0.25
"""How often a worker sends its history, and the master looks which workers are there."""
LOST_S = 6.0
"""How long the master hears nothing of a worker before it has lost it; docs/workers.md."""
CLOCK_MS = 100.0
"""How far a worker's clock may be off: events of its members are compared with those of others."""

# The client `wire`

BACKOFF_S, LONGEST_BACKOFF_S = 0.1, 1.0
"""How long it waits before it asks again, doubled from try to try (KIP-580)."""
REFUSED_S = 1.0
"""How long it waits after an error that it cannot mend, such as a missing permission."""
REQUEST_S = 30.0
"""How long a broker may take to answer (request.timeout.ms); JoinGroup waits longer."""
SEND_S = 10.0
"""How long a connection may take to open, and to take a request."""
UNCLEAR_S = 1.0
"""When a topic whose partitions cannot be seen is asked for again."""

# The page

COMMAND_S = 40.0
"""For the runner's answer to a command of the page: a forecast takes up to 30 s, and brokers may
have no coordinator for as long."""

# Wire scripts

NO_EXPIRY_MS = 120_000
"""Timeouts longer than a script takes: no session expires, and no rebalance times out."""
HEARTBEAT_S = 0.5
"""The heartbeat interval of scripted members."""
PAUSE_S, LONGEST_PAUSE_S = 0.07, 0.098
"""The pause before a request, drawn at random, so that log times tell the order of requests."""
ARRIVES_S = 0.15
"""How long after its sending a request that the broker holds has surely arrived."""
IN_ORDER_S = 0.5
"""How far apart two requests are whose order has to show: before 2.8 no line names whose return it
is about, and a busy broker may write the lines of requests 250 ms late."""
REJOIN_DELAY_S = 0.8
"""How long members wait before they rejoin: longer than a broker's timer may be late."""
KILL_WITHIN_S = 60
"""How long a script waits for its coordinator to be killed, and to be back."""
UNANSWERED_S = 8
"""How long a script waits for a response that may never come."""
GROWS_WITHIN_S = 120
"""How long a script waits until its topic has more partitions."""
NOTICED_S = 6.0
"""How long members run on after the topic has grown: enough for a leader to notice."""

# The live page

EVENTS_EVERY_S = 0.25
"""How often a greenlet looks for what its browser was not sent yet."""
EVENTS_IDLE_S = 5.0
"""After how long without news a browser is sent a comment: only so is it noticed that it left."""
PLAIN_EVERY_S = 1.0
"""How often the state of a load without an experiment is made, at most."""
