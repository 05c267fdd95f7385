"""Two workers commit, one of them late: an older offset comes after a newer one."""

from of_confluent import commit, consume, owned, subscribed

late: dict = {}


def twice(ends: dict) -> None:
    mine = owned(consumer, ends)
    commit(consumer, mine)
    commit(consumer, {one: late[one] for one in mine if one in late})
    late.update(mine)


consumer = subscribed()
consume(consumer, committed=twice)
consumer.close()
