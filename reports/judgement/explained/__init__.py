"""Findings in words: what each kind means, three sentences about each, and its page."""
