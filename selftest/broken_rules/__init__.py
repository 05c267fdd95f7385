"""Mutants: coordinators with one rule switched off, which the oracle must tell from Kafka.

In goes what goes into `step`; out comes what `step` would return without that rule. The log that is
synthesized from a mutant is consistent in itself, so only the protocol's rules can refute it.
It knows the oracle alone.
"""

from selftest.broken_rules import failover, leaving, rebalancing, sessions, static
from selftest.broken_rules.form import Step

MUTANTS: dict[str, Step] = {
    mutant.__name__: mutant
    for module in (static, sessions, leaving, rebalancing, failover)
    for mutant in module.MUTANTS
}
"""All of them by their names, which say what they do wrong."""

__all__ = ["MUTANTS", "Step"]
