"""Has one `group.instance.id` in its settings, whichever process it is."""

from of_confluent import consume, subscribed

consumer = subscribed(group_instance_id="payments-prod")
consume(consumer)
consumer.close()
