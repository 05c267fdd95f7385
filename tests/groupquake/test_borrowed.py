import json

import pytest

from groupquake.access import require_allowed
from groupquake.exits import NotAuthorizedError


@pytest.mark.parametrize(
    ("error", "named"),
    [
        ("JoinGroup failed: Broker: Group authorization failed", "GROUP_AUTHORIZATION_FAILED"),
        ("TOPIC_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_what_a_client_was_refused_is_named(error, named, tmp_path):
    history = tmp_path / "history.jsonl"
    first = {"member": "clerk-0", "group": "g", "event": "created"}
    refused = {"member": "clerk-0", "group": "g", "event": "error", "error": error}
    history.write_text(f"{json.dumps(first)}\n{json.dumps(refused)}\n")
    with pytest.raises(NotAuthorizedError, match=f"^member clerk-0: {named}: .*'trial-'"):
        require_allowed(history, "trial-")


def test_another_error_is_not_of_acls(tmp_path):
    history = tmp_path / "history.jsonl"
    require_allowed(history, "")
    line = {"member": "clerk-0", "event": "error", "error": "Broker: Unknown member"}
    history.write_text(json.dumps(line) + "\n")
    require_allowed(history, "")
