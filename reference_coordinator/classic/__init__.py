"""The classic group protocol: `step` decides what one event does to one group.

In go a group's state, an event and a profile; out come the next state and its effects.
It knows `kafka_protocol`, and no clock, randomness, threads, logging, network or Spark.
"""
