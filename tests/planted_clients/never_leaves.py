"""Ends at SIGTERM without closing its consumer."""

import os

from of_confluent import consume, subscribed

consume(subscribed())
os._exit(0)
