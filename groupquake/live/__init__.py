"""The page's view of a run that goes on: what its files say so far, drawn as the report draws it.

In: the run folder as it grows. Out: the page's state, as JSON patches. It judges nothing.
"""
