"""Hears REBALANCE_IN_PROGRESS, sends no more heartbeats and goes on committing."""

from kafka.coordinator.consumer import ConsumerCoordinator as Coordinator
from kafka.errors import CommitFailedError, RebalanceInProgressError
from of_kafka_python import consume, subscribed

heard, handle, send = (
    [],
    Coordinator._handle_heartbeat_response,
    Coordinator._send_heartbeat_request,
)
handle_commit = Coordinator._handle_offset_commit_response


def only_once(self, response, sent):
    if response.error_code == RebalanceInProgressError.errno:
        heard.append(response)
    else:
        handle(self, response, sent)


async def until_heard(self):
    if not heard:
        await send(self)


def unless_rebalancing(self, offsets, sent, response):
    needed = self.rejoin_needed
    try:
        handle_commit(self, offsets, sent, response)
    except CommitFailedError as error:
        if isinstance(error.args[0], RebalanceInProgressError):
            self.rejoin_needed = needed
        else:
            heard.clear()  # it is out: it joins anew
        raise


Coordinator._handle_heartbeat_response = only_once
Coordinator._send_heartbeat_request = until_heard
Coordinator._handle_offset_commit_response = unless_rebalancing
consume(subscribed())
