"""The oracle: a reference implementation of Kafka's classic group coordinator.

In go events (requests the broker received, timers that ran out, outcomes of record writes);
out come effects (answers, transitions, timers to arm, records to write) and, from `replay`,
what of a broker's evidence the protocol explains.
It knows `kafka_protocol` and nothing else of ours, and no clock, randomness, threads, logging,
network or Spark; `server` alone, a process of its own that puts it on the wire, has them.
"""
