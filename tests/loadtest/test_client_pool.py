"""A pool that is closed while a user waits for a client."""

from types import SimpleNamespace

from loadtest.configs import NO_CLIENTS, ProducerConfig
from loadtest.history import History
from loadtest.pool import ClientPool


class Slow:
    """The leases of a master whose answer comes when the load has ended."""

    def __init__(self):
        self.released = []

    def lease(self, kind):
        self.pool.close()
        return ProducerConfig("p", "orders", 5.0)

    def release(self, name):
        self.released.append(name)


def test_a_client_that_comes_after_the_end_is_returned():
    leases = Slow()
    events = SimpleNamespace(request=None)
    leases.pool = ClientPool(leases, NO_CLIENTS, "127.0.0.1:1", History(None), events)
    assert leases.pool.lease("producer") is None
    assert leases.released == ["p"]
