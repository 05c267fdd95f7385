"""How fast the comparison, the oracle and a whole verdict are.

In: a recorded run and the sources. Out: small tables of figures; each is printed only if the
measured work gave the right result. It may import all packages of ours; none imports it.
"""

PROBE_FOLDER = "GROUPQUAKE_PROBE"
"""The variable that names the folder of `probe`."""
