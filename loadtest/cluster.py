"""Whether the cluster of a load can be reached, asked once before any user starts.

Each member of a cluster that is away reports an error for every broker and every try. So one client
asks first, and one message says what it met.
"""

from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from loadtest.errors import LoadtestError
from loadtest.members.security import client_properties
from loadtest.members.settings import servers
from loadtest.pool import BlockingCalls
from loadtest.timing import REACHED_S
from scenarios.client_properties import PropertiesError


def require_reachable(bootstrap: str) -> None:
    """Wait until a broker has sent its metadata, `REACHED_S` at most; other greenlets go on.

    Raises LoadtestError, with the first error of the connection, if none has.
    """
    met: list[KafkaError] = []
    settings: dict[str, Any] = {
        **client_properties(),
        **servers(bootstrap),
        "log_level": 0,
        "error_cb": met.append,
    }

    def ask() -> None:
        admin = AdminClient(settings)
        try:
            admin.list_topics(timeout=REACHED_S)
        finally:
            admin.poll(0)

    try:
        BlockingCalls(1)(ask)
    except (KafkaException, PropertiesError) as error:
        why = met[0] if met else error.args[0]
        raise LoadtestError(
            f"no broker answered at {bootstrap} within {REACHED_S:g} s"
            f" ({why.str() if isinstance(why, KafkaError) else why}); start the cluster, or name"
            " another by -H HOST:PORT"
        ) from error
