"""Adapters of other clients: what `clients/` holds in, command lines of group members out.

Each is a folder with its source, its own build file with pinned versions, and `adapter.toml`. It is
built once, into the user's cache. May know everything.
"""
