"""Kafka's facts, each once. The package imports none of ours, so every package may import it.

| fact | module |
|---|---|
| error codes | `errors` |
| why a record cannot be appended, as lines name it | `append_errors` |
| APIs: names, keys, which are about groups | `apis` |
| the version of an API at which a field or rule begins, with its KIP | `versions` |
| the fields of requests and responses, by version | `bodies` |
| those bodies from and to kio's entities | `kio_bodies` |
| frames on the wire, and the requests and responses in them | `frames` |
| the release at which logs or the default coordinator changed | `releases` |
| the offsets partition of a group | `offsets_topic` |
| hashes and orders that coordinators inherit from the JVM | `jvm` |
| what members and leaders write: subscriptions, assignments | `consumer_protocol` |
| the form of every line in `group.log`, and writing one | `log_line`, `log_file` |
| lines about completed requests, JSON (from 2.8) and text (before) | `request_log` |
| the coordinators' lines, by coordinator and release | `coordinator_lines` |
| how names are shown, which may hold any character | `printable` |

Input: text that a broker wrote, or values to print. Output: values, or the text of a line.
"""
