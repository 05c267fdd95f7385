"""Mutants: coordinators with one rule switched off, which the oracle must tell from Kafka.

In goes what goes into `step`; out comes what `step` would return without that rule. The log that is
synthesized from a mutant is consistent in itself, so only the protocol's rules can refute it.
It knows the oracle alone.
"""

from collections.abc import Mapping

from reference_coordinator.classic.step import Step
from selftest.broken_rules import members, rebalances
from selftest.broken_rules.form import Rule

BROKEN_RULES: Mapping[str, Rule] = {**members.BROKEN_RULES, **rebalances.BROKEN_RULES}
"""All rules, by what a coordinator without it does wrong."""
MUTANTS: Mapping[str, Step] = {name: rule.broken for name, rule in BROKEN_RULES.items()}
"""The coordinators without them."""

__all__ = ["BROKEN_RULES", "MUTANTS", "Rule", "Step"]
