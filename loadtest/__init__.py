"""Members and producers of consumer groups as Locust users.

In: client configurations (from an experiment file or from Locust's options), bootstrap servers,
and commands over the control channel while the test runs.
Out: running group members, Locust statistics, and the client history as JSON lines.

    configs ─► lease_table ─► pool ─► users (Locust) ─► members/, producer ─► history
               workers/: the same over several Locust processes      wire/: groupquake's own client
    locustfile ─► load_session ─► load, control, page/, telemetry    wire_scripts/: a program

It may import `scenarios` and `kafka_protocol`. Importing Locust patches the whole interpreter, so
few modules do: `users.py`, `load_session.py`, `locustfile.py`, `page/page.py`.
"""
