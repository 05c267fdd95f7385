"""Incidents: the lines of brokers' own `server.log` in; what happened to their groups out.

There is no run folder and no request log: evidence level `coordinator`, whose verdict is `unknown`.
A room of its own: nothing else in `reports` imports it, and it shares only what the import rules
name. `analysis` calls the rest: `stock_logs` has Spark read and group the lines; `lines`
reads one, `group_incident` and what it calls tell what happened to one group,
`summary` puts it together for all, and `page` draws it.
"""
