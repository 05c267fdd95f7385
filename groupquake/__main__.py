"""`python -m groupquake`."""

from groupquake.cli import main

main()
