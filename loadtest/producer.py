"""A producer at a constant rate, whose records are numbered.

It chooses the partition of each record, round robin, and numbers the records of a partition from 1
on; values are `PRODUCER NUMBER` (`loadtest.processed`). It is idempotent (KIP-98): a retry neither
stores a record twice nor after a later one, also where a partition's leader changes meanwhile. So
numbers that do not follow are no work of the producer, except after a record that was not stored:
it then calls itself otherwise, and counts from 1 again.
"""

import logging
import time
from collections import Counter, deque
from contextlib import suppress
from functools import partial
from typing import Any

import gevent
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as KafkaProducer
from gevent.lock import RLock

from kafka_protocol.printable import printable
from loadtest.configs import ProducerConfig
from loadtest.history import ErrorLines, History, Report, now_ms
from loadtest.members.librdkafka import RunBlocking
from loadtest.members.security import client_properties
from loadtest.members.settings import servers
from loadtest.processed import producer_since
from loadtest.timing import FLUSH_S, PARTITIONS_ANSWER_S, PARTITIONS_EVERY_S, POLL_EVERY_S
from scenarios.client_properties import PropertiesError

_LOG = logging.getLogger(__name__)


class PacedProducer:
    """Produces a constant number of records a second, and writes a history line each second.

    Only `close` waits.
    """

    poll_every_s = POLL_EVERY_S

    def __init__(
        self,
        config: ProducerConfig,
        bootstrap: str,
        history: History,
        report: Report,
        run_blocking: RunBlocking,
    ) -> None:
        self.config = config
        self.name = config.name
        self._bootstrap = bootstrap
        self._write = partial(history.write, member=config.name, kind="producer")
        self._error_lines = ErrorLines(self._write)
        self._one_closes = RLock()
        self._report = report
        self._run_blocking = run_blocking
        self._producer: KafkaProducer | None = None
        self._partitions = 0
        self._asking: gevent.Greenlet
        self._is_fatal = False
        self._delivered: deque[tuple[float | None, str | None]] = deque()
        self._reported_errors: deque[tuple[KafkaError, float]] = deque()

    def open(self) -> None:
        """Create the client; the rate counts from now. One that is refused stays down."""
        try:
            self._producer = KafkaProducer(
                {
                    **client_properties(),
                    **servers(self._bootstrap),
                    "client.id": self.config.name,
                    "enable.idempotence": True,
                    "error_cb": lambda error: self._reported_errors.append((error, now_ms())),
                }
            )
        except (KafkaException, PropertiesError) as error:
            why = f"{self.name!r} cannot be started: {error}"
            _LOG.warning("%s", printable(why))
            self._write("error", error=why)
            self._report("error", None, error=why)
            return
        self._write("created")
        self._began_s = self._written_s = time.perf_counter()
        self._sent = self._records = self._errors = 0
        self._is_fatal = False
        self._count_anew()
        self._asking = gevent.spawn(self._ask_for_partitions, self._producer)

    def poll_once(self) -> None:
        """Send the records due by now, and count acknowledgements."""
        producer = self._producer
        if producer is None:
            return
        due = int((time.perf_counter() - self._began_s) * self.config.rate)
        # After a stall records are skipped: to catch up would be a burst.
        self._sent = max(self._sent, due - max(1, int(self.config.rate)))
        while self._partitions and self._sent < due:
            self._sent += 1
            self._send(producer, self._sent)
        try:
            producer.poll(0)
        except KafkaException as error:  # a fatal error, which goes to no callback
            self._reported_errors.append((error.args[0], now_ms()))
        self._process_callbacks()
        if time.perf_counter() - self._written_s >= 1:
            self._write_produced()
            if self._is_fatal:
                self._open_anew()

    def _open_anew(self) -> None:
        """Have another client, unless the producer is closed meanwhile."""
        with self._one_closes:  # who closes it waits for that client
            if self._producer is not None:
                self.close()
                self.open()

    def close(self) -> None:
        """Wait for unacknowledged records, `FLUSH_S` at most, and close the client."""
        with self._one_closes:
            producer, self._producer = self._producer, None
            if producer is None:
                return
            self._write("closing")
            began_s = time.perf_counter()
            try:
                self._asking.kill()  # once its thread no longer uses the client
                self._run_blocking(lambda: _finish(producer))
            finally:
                self._process_callbacks()
                self._write_produced()
                took_ms = round((time.perf_counter() - began_s) * 1000, 1)
                self._write("closed", took_ms=took_ms)

    def _ask_for_partitions(self, producer: KafkaProducer) -> None:
        """Look again and again how many partitions the topic has."""
        topic = self.config.topic
        while True:
            with suppress(KafkaException):  # no answer
                found = self._run_blocking(lambda: producer.list_topics(topic, PARTITIONS_ANSWER_S))
                self._partitions = len(found.topics[topic].partitions) or self._partitions
            # without an answer, or the right to one, the first record says what is wrong
            self._partitions = self._partitions or 1
            gevent.sleep(PARTITIONS_EVERY_S)

    def _count_anew(self) -> None:
        self._calls_itself = producer_since(self.name, now_ms())
        self._numbers = Counter[int]()

    def _send(self, producer: KafkaProducer, sent: int) -> None:
        partition = sent % self._partitions
        number = self._numbers[partition] + 1
        value = f"{self._calls_itself} {number}"
        try:
            producer.produce(
                self.config.topic, value, str(sent), partition, on_delivery=self._queue_callback
            )
            self._numbers[partition] = number
        except BufferError:
            self._delivered.append((None, "_QUEUE_FULL"))
        except KafkaException as error:
            self._delivered.append((None, error.args[0].name()))

    def _queue_callback(self, error: Any, message: Message) -> None:
        latency_s = message.latency()
        took_ms = None if latency_s is None else latency_s * 1000
        self._delivered.append((took_ms, error.name() if error else None))

    def _process_callbacks(self) -> None:
        errors = self._errors
        while self._delivered:
            took_ms, error = self._delivered.popleft()
            self._records += error is None
            if error is not None:
                self._errors += 1
                self._error_lines.write(error, f"produce: {error}")
            self._report("produce", took_ms, error=error)
        if self._errors > errors:
            self._count_anew()
        while self._reported_errors:
            client_error, at_ms = self._reported_errors.popleft()
            self._error_lines.write(client_error.name(), client_error.str(), at_ms)
            self._report("error", None, error=client_error.name())
            self._is_fatal |= client_error.fatal()

    def _write_produced(self) -> None:
        self._write("produced", records=self._records, errors=self._errors)
        self._records = self._errors = 0
        self._written_s = time.perf_counter()


def _finish(producer: KafkaProducer) -> None:
    # a fatal error: nothing more is stored; its callbacks fail in CPython while it is raised
    with suppress(KafkaException, SystemError):
        if producer.flush(FLUSH_S):
            producer.purge()
            producer.poll(0)
    producer.close()
