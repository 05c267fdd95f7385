"""groupquake: proves from brokers' own logs whether every rebalance of a consumer group was due.

In: a command line. Out: a run folder, a verdict and an exit code.
It is the composition root, the only package that may import all the others.
"""

from importlib.metadata import version

__version__ = version("groupquake")
