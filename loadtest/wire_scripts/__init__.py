"""Wire scripts: scripted groups whose members send requests that real clients rarely send.

In: brokers and the names of scripts. Out: what the brokers log of their groups; a script ends with
an error if a broker's response is not the one it is written for.
It is a program (`python -m loadtest.wire_scripts`) of threads, without gevent.
"""

FINISHED, READY = "finished", "ready for the fault"
"""What the program prints of a script, as `NAME: STATE`. The runner waits for these lines."""
