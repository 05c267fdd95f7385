"""A member that is a program, in the place of others: its client id says how it behaves.

It prints the lines of the VerifiableConsumer (Kafka 4.3.0), and what it got.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

NAME = os.environ["GROUPQUAKE_CLIENT_ID"]
BOTH = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
COMMIT = {"name": "offsets_committed", "offsets": [{"topic": "t", "partition": 0, "offset": 7}]}


class ClosedError(Exception):
    """It got SIGTERM."""


def close(*_):
    raise ClosedError


def say(**fields):
    line = json.dumps({"timestamp": 1, **fields}) + "\n"
    os.write(1, line.encode())  # whole, whenever the signal comes


def start():
    properties = Path(os.environ["GROUPQUAKE_PROPERTIES"]).read_text()
    Path("environment.json").write_text(json.dumps(dict(os.environ)))
    given = {name: value for name, value in os.environ.items() if name.startswith("GROUPQUAKE_")}
    os.write(1, b'what the runtime itself has to say\n{"name":"partitions_assigned"}\n')
    say(name="startup_complete", arguments=sys.argv[1:], properties=properties, given=given)
    if secured := os.environ["GROUPQUAKE_CLIENT_PROPERTIES"]:
        mode = oct(Path(secured).stat().st_mode & 0o777)
        twice = [Path(secured).read_text() for _ in range(2)]
        Path("secured.json").write_text(json.dumps([secured, mode, *twice]))


def work():
    say(name="partitions_assigned", partitions=BOTH)
    say(**COMMIT, success=True)
    say(**COMMIT, success=False, error="fenced")
    match NAME:
        case "fails":
            for _ in range(3):
                say(name="error", error="[Error 30] GroupAuthorizationFailedError")
            say(name="partitions_assigned", partitions=[])
        case "fenced":
            say(name="partitions_revoked", partitions=BOTH[1:])
            say(name="fenced", error="FENCED_INSTANCE_ID")
        case "ends" if Path("once").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        case "ends":
            Path("once").touch()
            sys.exit("Traceback: \x1b[31m\n\nValueError: bad record \xe9" + "!" * 500)
        case "reads":
            sums = [{"topic": "t", "partition": n, "minOffset": n, "maxOffset": 4} for n in (0, 1)]
            say(name="records_consumed", count=9, partitions=sums)
            say(**COMMIT, success=True)
            say(name="records_consumed", count=1)
            sums = [{"topic": "t", "partition": 0, "minOffset": n, "maxOffset": n} for n in (5, 7)]
            say(name="records_consumed", count=2, partitions=sums)
            say(name="partitions_revoked", partitions=BOTH)
        case "shows":
            for offset, number in enumerate((1, 2, 4)):
                value = f"p@1790000000000 {number}"
                say(name="record_data", topic="t", partition=0, offset=offset, value=value)
            sums = [{"topic": "t", "partition": 0, "minOffset": 0, "maxOffset": 2}]
            say(name="records_consumed", count=3, partitions=sums)
            say(name="record_data", topic="t", partition=0, offset=3, key=None, value=None)
            say(name="partitions_revoked", partitions=BOTH)
        case "talks":
            while True:
                with Path("polls").open("a") as polls:
                    polls.write(".")
                say(name="records_consumed", count=1, filler="x" * 200)
                time.sleep(0.001)
    time.sleep(60)


def end():
    match NAME:
        case "crashes":
            os.abort()
        case "deaf":
            time.sleep(60)
        case "slow":
            time.sleep(1)
    say(name="partitions_revoked", partitions=BOTH[1:])
    say(name="shutdown_complete")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, close)
    start()
    try:
        work()
    except ClosedError:
        end()
