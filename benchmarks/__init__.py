"""How fast the comparison, the oracle and a whole verdict are.

In: a recorded run and the sources. Out: small tables of figures, each checked for being right
before it is told. It may know everything of ours, and nothing of ours knows it.
"""
