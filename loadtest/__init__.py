"""Members and producers of consumer groups as Locust users.

In: client configurations (from an experiment file or from Locust's options), bootstrap servers,
and commands over the control channel while the test runs.
Out: running group members, Locust statistics, and the client history as JSON lines.
It may import `scenarios` and `kafka_protocol`. Importing Locust patches the whole
interpreter, so few modules do: `users.py`, `load_session.py`, `locustfile.py`, `ui.py`.
"""
