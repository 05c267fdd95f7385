"""The commands of `groupquake`, a module for each; `cli.py` imports one when it is called.

In go a command's arguments; out come its output and an exit code, or an exception of ours.
Each may import all of ours, but what looks at experiments alone imports nothing that runs them.
"""
