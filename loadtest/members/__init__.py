"""Group members: a name and a configuration in, one client after the other, and what it saw, out.

`Member` is a name in a group. Its clients run in the process of the load (`librdkafka`, `wire`) or
are programs (`program`). A duplicate is another member.
"""
