"""Members and producers of consumer groups as Locust users.

In: a roster of identities (from an experiment file or from Locust's command line) and bootstrap
servers, then orders over the control channel while the test runs.
Out: live group members, Locust statistics, and the client history as JSON lines.
It may import `scenarios` and nothing else of ours; importing Locust patches the whole interpreter,
so only `users.py` and `locustfile.py` do.
"""
