"""What clients owe to the protocol: logged requests of a group in, findings about clients out.

The replay judges brokers; these rules judge clients, by what they sent and were answered. A finding
names the requests that show it. None of them changes the verdict on the brokers. Pure functions.
"""

from reports.judgement.clients.client_rules.findings import (
    CLIENT_FINDINGS,
    ClientRules,
    about_client,
    about_clients,
)
from reports.judgement.clients.client_rules.rules import (
    COMMITS_ON,
    DEMANDS,
    ON_TIME,
    OWNS_ALONE,
    RULES,
    SOURCES,
)

__all__ = [
    "CLIENT_FINDINGS",
    "COMMITS_ON",
    "DEMANDS",
    "ON_TIME",
    "OWNS_ALONE",
    "RULES",
    "SOURCES",
    "ClientRules",
    "about_client",
    "about_clients",
]
