"""The tap: a proxy before the brokers that writes what goes over the wire, and can break it.

In: where the brokers are, and rules. Out: a listener for every broker, and a `group.log` for each.
It runs in a process of its own (`python -m chaos.tap`); it may import `kafka_protocol`.
"""
