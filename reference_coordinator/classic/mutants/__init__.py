"""Coordinators with one rule switched off: what the oracle must be able to tell from Kafka.

In goes what goes into `step`, out comes what would come out if that rule were not there: a mutant
lies coherently, so whatever is built on it agrees with itself, and only knowledge of the protocol
finds it out.
It knows the oracle alone, as the oracle does.
"""

from reference_coordinator.classic.mutants import failover, leaving, rebalancing, sessions, static
from reference_coordinator.classic.mutants.form import Step

MUTANTS: dict[str, Step] = {
    mutant.__name__: mutant
    for module in (static, sessions, leaving, rebalancing, failover)
    for mutant in module.MUTANTS
}
"""All of them by their names, which say what they do wrong."""

__all__ = ["MUTANTS", "Step"]
