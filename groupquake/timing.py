"""How long the parts of this package wait, and how often they look.

A limit without a reason is for what hangs.
"""

# Processes of a run

LOAD_START_S = 60.0
"""Until the load has written its control port: it imports Locust and librdkafka."""
WORKERS_ELSEWHERE_S = 600.0
"""Until workers elsewhere have connected: the user starts them by hand."""
WORKERS_QUIT_S = 10.0
"""Until workers elsewhere have ended with a failed load; others are killed with it."""
HISTORIES_S = 40.0
"""Until the histories of workers have come, once all members are closed."""
SCRIPTS_START_S = 60.0
"""Until the process of the wire scripts has printed its first line."""
SCRIPTS_READY_S = 120.0
"""Until they are ready for the fault at their coordinator."""
SCRIPTS_END_S = 180.0
"""Until they have ended after the last phase."""
WAITING_SHOWN_S = 5.0
"""How often a progress line says what is waited for."""

# An external cluster

ANSWER_S = 6.0
"""For the first answer of a broker; librdkafka says at once what a connection failed at."""
CONNECT_S = 20.0
"""For kafka-python to connect to a cluster that has answered."""
ANSWER_POLL_S = 0.05
"""How often the callbacks of librdkafka are asked for."""
DELETION_S = 30.0
"""For groups and topics of a run to be gone: members that were killed may still be in them."""
DELETION_POLL_S = 0.5
"""How often that is tried."""

# What is shown and noted

SCREEN_S = 0.5
"""How often a run's folder is looked at for what is printed, and its bar is drawn."""
LAST_LINES_S = 1.0
"""For the last lines to be written where a signal ends the analysis: nobody may read them."""
PAGE_S = 1.0
"""How often the state of the live page is computed, at most."""
PAGE_SHARE = 0.1
"""The part of its time that the runner spends on that: its faults are due at their instants."""
FORESEEN_S = 30.0
"""For the forecast of a fault by hand: 500 members take 4 s of a CPU, the first one
starts a process, and the run goes first."""
SAMPLER_TICK_S = 0.05
"""How often the sampler looks at the processes of brokers."""
SAMPLE_S = 1.0
"""How often it notes a sample of the machine."""
SAMPLER_LATE_S = 0.1
"""It notes when it runs this much later than it meant to."""
REPLAY_SHOWN_S = 2.0
"""How often `oracle replay` says how far it is."""
REDUCTION_S = 30
"""How long the first violation is reduced, where --effort does not say."""
SHORTER_MS = 500
"""By how much `shrink` shortens times at least: less is within what members and brokers take."""

# Watching

HOLD_S = 1.0
"""How long a process that is silent is waited for: lines of several are counted by their times."""
FOLLOW_S = 0.25
"""How often files are looked at for new lines."""
START_AGAIN_S = 5.0
"""The pause before a followed command that has ended is started again."""
COMMAND_END_S = 5.0
"""For a followed command to end when its output has ended; then it is killed."""
WEBHOOK_S = 5.0
"""For the answer of a webhook."""

# What a run usually takes beside its phases, for `list`, `show` and the bar

USUAL_START_MS = 25_000
"""From the command to the first phase with faults: brokers, members, steady state."""
USUAL_JUDGING_MS = 20_000
"""From the last phase to the verdict: brokers end, Spark starts. Two cores, eight members."""
