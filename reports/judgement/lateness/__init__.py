"""Lateness: when a broker worked, and whether standing still explains what is proven wrong."""
