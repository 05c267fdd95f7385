"""The lines of `tap/<broker id>/group.log` beside those of Kafka's request log.

The tap writes what it saw between clients and a broker. A request that was answered has a line as
Kafka's; these are the others. Where a rule of the tap or the end of a connection acted, the key
`tap` of the JSON says so: `forwarded` whether the broker was sent the request, `requestHeldMs` how
long that took, `copy` whether it is the second of a request that was sent twice, and `errorCode`
what the client was answered instead of the response.
"""

LOGGER = "groupquake.tap"
UNANSWERED = "Unanswered request:"
"""A request that was never answered; the line has no response, and no parts of its time."""
HIT = "Hit request:"
"""A request that a rule hit, of an API that is no evidence; the line has no bodies."""
UNREADABLE = "Unreadable request:"
"""A request that could not be decoded."""
ENDED = "The tap ended."
"""The last line of a log: whatever the tap saw of this broker stands before it."""
COPY = '"copy":true'
"""Stands at the end of the line of a request that was sent a second time."""
