"""The commands of `groupquake`, a module for each; `cli.py` imports one when it is called.

In: a command's arguments. Out: its output and an exit code, or an exception of ours.
Each may import all packages of ours; commands that only read experiments import nothing that runs.
"""
