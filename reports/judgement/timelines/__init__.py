"""Timelines: lines and the replay in; observed beside expected rebalances, line by line, out."""
