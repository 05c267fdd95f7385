"""groupquake: proves from brokers' own logs whether every rebalance of a consumer group was due.

In goes a command line; out come a run folder, a verdict and an exit code.
It is the composition root, the only package that knows all the others.
"""

from importlib.metadata import version

__version__ = version("groupquake")
