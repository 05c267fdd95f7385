"""Kafka's facts, each once: error codes, APIs, versions, bodies, request lines, coordinator lines.

In goes nothing but text that a broker wrote or is to write; out come values, and lines.
It knows nothing of ours, so every package may import it.
"""
