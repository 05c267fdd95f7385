"""Clients against brokers: what clients say, assign, commit and send, and what brokers answered."""
