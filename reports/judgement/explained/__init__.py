"""Findings in words: what each kind means, what a reader is told of one, and its page."""
