"""Takes longer than max.poll.interval.ms for a record now and then."""

from member import GIVEN, every, stopping
from of_confluent import consume, subscribed

is_big = every(20)


def process() -> None:
    if is_big():
        print("a big record", flush=True)
        stopping.wait(int(GIVEN["MAX_POLL_INTERVAL_MS"]) / 1000 + 2)


consumer = subscribed()
consume(consumer, before=process)
consumer.close()
