"""The rules about what an application does with its records, which `records` judges."""

from reports.judgement.clients.client_rules.client_processes import Rule

AT_LEAST_ONCE = "at-least-once delivery (KafkaConsumer's documentation: Offsets and Position)"
LOSES_NO_RECORD = Rule(
    "loses-no-record",
    "A member commits an offset once all records below it are processed.",
    AT_LEAST_ONCE,
    "Commit after the records are processed, not before, and no further than they are: with several"
    " threads, up to the oldest record that is not done.",
    about="application",
)
BEGINS_AT_ITS_COMMIT = Rule(
    "begins-at-its-commit",
    "A member processes no record again that was committed past before it got the partition.",
    AT_LEAST_ONCE,
    "Begin each assigned partition at its committed offset; keep no position of an earlier"
    " assignment, and do not seek back.",
    about="application",
)
KEEPS_ORDER = Rule(
    "keeps-order",
    "A member processes the records of a partition in the order of their offsets.",
    "KafkaConsumer's documentation: records of a partition are in order",
    "Process each partition by one thread at a time, and seek back only on a new assignment.",
    about="application",
)
STOPS_WHEN_GIVEN_UP = Rule(
    "stops-when-given-up",
    "A member processes no record of a partition that it gave up, or that is another's by now.",
    "ConsumerRebalanceListener: after onPartitionsRevoked or onPartitionsLost they are another's",
    "Finish or drop the records of a partition before the rebalance listener returns, and process"
    " none once the group says that the member is out.",
    on_time=True,
    about="application",
)
RULES = (LOSES_NO_RECORD, BEGINS_AT_ITS_COMMIT, KEEPS_ORDER, STOPS_WHEN_GIVEN_UP)
