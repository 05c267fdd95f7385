"""The coordinator in virtual time: what a broker and its clients do around `step`.

In go a profile, clients and what happens when; out come effects and responses, each in its time.
Nothing here is random: who drives says what Kafka leaves open, and how long things take.
"""
