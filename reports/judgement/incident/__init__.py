"""Incidents: the lines of brokers' own `server.log` in; what happened to their groups out.

There is no run folder and no request log: evidence level `coordinator`, whose verdict is `unknown`.
Pure functions: `stock_lines` reads a line, `group_incident` and what it calls tell what happened to
one group, `summary` puts it together for all. Where the text comes from is not known here.
"""
