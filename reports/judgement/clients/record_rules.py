"""The rules about what an application does with its records, which `records` judges."""

from collections.abc import Mapping
from functools import partial

from reports.judgement.clients.client_rules.client_processes import Rule

AT_LEAST_ONCE = "at-least-once delivery (KafkaConsumer's documentation: Offsets and Position)"
_rule = partial(Rule, about="application")
BREAKS: Mapping[str, Rule] = {
    "lost": _rule(
        "loses-no-record",
        "A member commits an offset once all records below it are processed.",
        AT_LEAST_ONCE,
        "Commit after the records are processed, not before, and no further than they are: with"
        " several threads, up to the oldest record that is not done.",
    ),
    "again": _rule(
        "begins-at-its-commit",
        "A member processes no record again that was committed past before it got the partition.",
        AT_LEAST_ONCE,
        "Begin each assigned partition at its committed offset; keep no position of an earlier"
        " assignment, and do not seek back.",
    ),
    "out_of_order": _rule(
        "keeps-order",
        "A member processes the records of a partition in the order of their offsets.",
        "KafkaConsumer's documentation: records of a partition are in order",
        "Process each partition by one thread at a time, and skip no record to come back to it.",
    ),
    "after_given_up": _rule(
        "stops-when-given-up",
        "A member processes no record of a partition that it gave up, or that is another's by now.",
        "ConsumerRebalanceListener: after onPartitionsRevoked, onPartitionsLost they are another's",
        "Finish or drop the records of a partition before the rebalance listener returns, and"
        " process none once the group says that the member is out.",
        on_time=True,
    ),
}
"""The rule that a member breaks, by `what` of the table `records`."""
RULES = tuple(BREAKS.values())
