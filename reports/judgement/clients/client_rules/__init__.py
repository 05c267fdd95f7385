"""What clients owe to the protocol: logged requests of a group in, findings about clients out.

The replay judges brokers; these rules judge clients, by what they sent and were answered. A finding
names the requests that show it. None of them changes the verdict on the brokers. Pure functions.
"""
