"""How long the parts of this package wait, and how often they look.

In seconds, or ms where the name ends so. A limit without a reason is for what hangs.
"""

# Looking

POLL_S = 0.05
"""How often something of this machine is looked at."""
STATE_POLL_S = 0.02
"""How often the state of a group is looked for: it may last for some milliseconds only."""
REMOTE_POLL_S = 0.2
"""How often brokers are asked the same: each time costs a connection."""
INTERRUPTIBLE_S = 0.5
"""How long one call of the main thread may wait: a signal is handled between two of them."""

# Runs

SOON_S = 5.0
"""How long before the end of a plan what comes next may begin to start."""
CONTROL_ANSWER_S = 30.0
"""For an answer of the load process: librdkafka closes a consumer whose JoinGroup is pending in
about 5 s."""
REQUEST_S = 5.0
"""For one answer of the brokers, from the first connection on."""
CHANGE_S = 20.0
"""For topics, partitions and reassignments; brokers that have just started may not know each
other yet."""
CHANGE_AGAIN_S = 0.5
"""How soon a change is tried again that the brokers could not make."""
METADATA_S = 2.0
"""For the metadata of brokers on this machine."""
SECURE_METADATA_S = 8.0
"""With TLS and SASL in front, perhaps far away."""
REMOVAL_S = 30.0
"""For the final response to a removal of members; a coordinator may be elected meanwhile."""
CLOCK_SET_MS = 400
"""Two clocks of a log line that part by more than this: the wall clock was set. `clock.skew` sets
it by 500 ms at least."""
LOG_CUT_MS = 1
"""The log truncates times to whole milliseconds."""

# Brokers of groupquake

READY_S = 120.0
"""From the launch of brokers until they take requests; one that is alone on two cores takes 2 s."""
PROGRESS_EVERY_S = 10.0
"""How often a start that takes long says which brokers it waits for."""
STOP_S = 20.0
"""From SIGTERM or SIGKILL until a broker has ended."""
CLOSED_STOP_S = 0.5
"""For the end of a broker whose coordinator is closed; the last controller would wait 5 s for a
quorum (4.3), and nothing depends on that."""
NO_QUORUM_STOP_S = 5.0
"""For the shutdown of the remaining brokers when most controllers have ended."""
FREEZE_S = 10.0
"""From SIGSTOP until no thread runs: on a busy machine some run on for a while."""
JAVA_VERSION_S = 30.0
"""For `java -version`."""
ZOOKEEPER_READY_S = 60.0
"""From the launch of ZooKeeper until it serves."""
ZOOKEEPER_FORGETS_S = 120.0
"""From the end of a broker until its session has: at most the next but one, by default 6 s."""
ZOOKEEPER_TICK_MS = 500
"""ZooKeeper grants sessions from two ticks on."""
ZOOKEEPER_LONGEST_SESSION_MS = 60_000
"""It shortens what a broker asks for to that."""
ENGINE_S = 300
"""For one request to the Docker engine: an image of 400 MB is loaded in one."""
BROKER_CONNECT_S = 1
"""For a TCP connection between two containers of one network."""
CLOCK_CONNECT_S = 2.0
"""For the connection of the request that a broker refuses."""
CLOCK_LINE_S = 5.0
"""From a refused request until the broker has logged it."""
CLOCK_POLL_S = 0.01
"""Reading a clock is as exact as this."""
UNMOUNT_S = 20.0
"""How long a process that was killed may keep a file system busy."""

# The tap

TAP_START_S = 60.0
"""From the launch of the tap until it listens."""
TAP_END_S = 30.0
"""From the request to end until its process is gone."""
TAP_ANSWER_S = 30.0
"""For the answer to a command, on a busy machine too: without one the tap is killed."""
SAME_START_MS = 1_000
"""Two readings of when one process started differ by less."""

# The oracle as a cluster

ORACLE_START_S = 60.0
"""From the launch of the oracle's process until it has read its settings; 1 s where it is alone."""
ORACLE_ANSWER_S = 30.0
"""For a broker of it that starts, stops or pauses, on a busy machine too."""

# Clusters of the user's

COMMAND_ENDS_S = 10.0
"""From SIGKILL until a hook or log command has ended."""
LOG_POLL_S = 0.1
"""How often the log of a broker is read on."""
LOG_COMMAND_AGAIN_S = 1.0
"""A log command that ends is started again this long after it began, at the earliest."""
LOG_QUIET_S = 1.5
"""The lines of a request come this soon after its answer; a command may be slower than a file."""
LOG_END_S = 10.0
"""How long a log may go on after the end of a run until its collection ends all the same."""
LOG_LIVE_S = 3.0
"""A command that follows a log has printed by then what was there before."""

# Faults

ROLE_S = 30.0
"""How long the cluster may lack a coordinator, leader or controller: after SIGKILL, a lease of
9 s."""
ENDED_ANSWER_S = 8.0
"""What a request that is under way gets once the run is to end: nothing can interrupt it."""
TAP_ENDED_S = 10.0
"""How long the tap may take to end after its run."""
SILENCE_GRACE_MS = 500
"""How long after the stop a request may still arrive: it was in flight, or the broker was slow to
log it."""
CONNECTING_MS = 10_000
"""How long a new consumer may take to find its coordinator, on a busy machine."""
PROBE_CONNECT_S = 2.0
"""For a connection to a broker on this machine, or to the tap."""
PROBE_ANSWER_S = 2.0
"""For the answer to an ApiVersions request."""
NAT_CLOCK_MS = 2_000
"""How much the clock of a broker behind a NAT may be behind this one."""
