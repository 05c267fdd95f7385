"""Two workers commit, one of them late: an older offset comes after a newer one."""

from member import stopping
from of_confluent import commit, consume, ends, owned, subscribed

LATE_S = 0.05
late: dict = {}


def twice() -> None:
    mine = owned(consumer, ends)
    commit(consumer, mine)
    stopping.wait(LATE_S)
    commit(consumer, {one: late[one] for one in mine if one in late})
    late.clear()
    late.update(mine)


consumer = subscribed()
consume(consumer, committed=twice)
consumer.close()
