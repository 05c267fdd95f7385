"""Lines: the text of brokers' logs, in whatever form people hold it, in; coordinator lines out.

`form` finds out from a file's first lines how it writes a line, and `reader` reads each by it:
`peeling` takes off what wraps a line, `anchor` finds the message in it, and `dates` the time.
"""
