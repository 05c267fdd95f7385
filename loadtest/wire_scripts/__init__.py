"""Groups whose members say what real clients hardly ever do, one group after each rule.

In: brokers and the names of stories. Out: what the brokers log of it; a story that a broker answers
otherwise than Kafka does ends in an error.
It is a program of its own (`python -m loadtest.wire_scripts`): asyncio and threads, no gevent.
"""
