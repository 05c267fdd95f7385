"""What clients owe to the protocol: logged requests of a group in, findings about clients out.

The replay judges brokers; these rules judge clients, by what they sent and were answered. A finding
names the requests that show it. None of them changes the verdict on the brokers. Pure functions.
"""

from reports.judgement.clients.client_rules.findings import (
    CLIENT_FINDINGS,
    RULES,
    ClientRules,
    about_client,
    about_clients,
)
from reports.judgement.clients.client_rules.membership import COMMITS_ON, OWNS_ALONE
from reports.judgement.clients.client_rules.rules import Rule

__all__ = [
    "CLIENT_FINDINGS",
    "COMMITS_ON",
    "OWNS_ALONE",
    "RULES",
    "ClientRules",
    "Rule",
    "about_client",
    "about_clients",
]
