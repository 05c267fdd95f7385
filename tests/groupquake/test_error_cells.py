"""What clients do with errors: the run that shows it, and the words that its lines become."""

import json

import pytest

from groupquake.trial.error_cells import CELLS, DOWN_S, STATIC, Did, experiment, read
from groupquake.trial.errors import markdown
from groupquake.trial.experiments import OWN, Candidate
from kafka_protocol import request_log, tap_lines
from kafka_protocol.errors import CODES

LIE_MS, CLIENT = 10_000, "m"


def line(api, sent_ms, error=None, *, form=request_log.COMPLETED, **request):
    """A line of the tap about a request that took 5 ms."""
    content = {"requestHeader": {"requestApiKeyName": api, "clientId": CLIENT},
               "request": request, "totalTimeMs": 5.0}  # fmt: skip
    content |= {} if error is None else {"tap": {"rules": ["r1"], "errorCode": CODES[error]}}
    times = f"1 {sent_ms + 5} {(sent_ms + 5) * 1_000_000}"
    return f"{times} tap DEBUG {form}{request_log.as_json(content)} (logger)\n"


FIND = ("FIND_COORDINATOR", LIE_MS + 20, None)
BEAT = ("HEARTBEAT", LIE_MS + 100, None)
AGAIN, AFRESH = ({"memberId": one} for one in ("m-1", ""))


def seen(folder, at_ms, event, lie, later):
    """Write what a run has of an error, of what comes later, and of an event at a time."""
    log = folder / "tap" / "1" / "group.log"
    log.parent.mkdir(parents=True)
    forms = {"FIND_COORDINATOR": tap_lines.HIT}
    log.write_text(
        line(lie, LIE_MS - 5, "UNKNOWN_SERVER_ERROR", **AGAIN)
        + "".join(line(*one[:3], form=forms.get(one[0], request_log.COMPLETED), **one[3])
                  for one in later)
    )  # fmt: skip
    said = {"member": CLIENT, "event": event, "at_ms": at_ms}
    (folder / "history.jsonl").write_text(json.dumps(said) + "\n")


@pytest.mark.parametrize(
    ("lie", "later", "event", "does"),
    [
        ("HEARTBEAT", [(*FIND, {}), (*BEAT, AGAIN)], "", "finds its coordinator again, goes on"),
        ("HEARTBEAT", [("JOIN_GROUP", LIE_MS + 50, None, AGAIN)], "", "joins with its id"),
        ("HEARTBEAT", [("JOIN_GROUP", LIE_MS + 50, None, AFRESH)], "", "joins afresh"),
        ("HEARTBEAT", [("JOIN_GROUP", LIE_MS - 1, None, AFRESH), (*BEAT, AGAIN)], "", "goes on"),
        ("HEARTBEAT", [(*BEAT, AGAIN)], "fenced", "ends"),
        ("HEARTBEAT", [], "", "falls silent"),
        ("HEARTBEAT", [("LEAVE_GROUP", LIE_MS + 9_500, None, {})], "closing", "falls silent"),
        ("HEARTBEAT", [(*BEAT, AGAIN), ("LEAVE_GROUP", LIE_MS + 8_999, None, {})], "closing",
         "goes on"),
        ("SYNC_GROUP", [("LEAVE_GROUP", LIE_MS + 50, None, {})], "ended", "leaves, ends"),
        ("SYNC_GROUP", [("SYNC_GROUP", LIE_MS + 50, None, AGAIN)], "", "sends it again"),
        ("OFFSET_COMMIT", [("OFFSET_COMMIT", LIE_MS + 50, None, AGAIN)], "",
         "commits the same again"),
        ("OFFSET_COMMIT", [("OFFSET_COMMIT", LIE_MS + 50, None, AGAIN | {"x": 1})], "", "goes on"),
    ],
)  # fmt: skip
def test_what_a_client_does_follows_from_what_it_sends_next(tmp_path, lie, later, event, does):
    seen(tmp_path, LIE_MS + 9_000, event or "assigned", lie, later)
    [found] = read(tmp_path)
    assert (found.api, found.error, found.does) == (lie, "UNKNOWN_SERVER_ERROR", does)
    assert found.shown[0] == "tap/1/group.log:1"


@pytest.mark.parametrize("name", OWN)
def test_each_cell_is_for_a_new_process_of_its_member(name):
    candidate = Candidate.of(name)
    run = experiment(candidate, "4.3.0")
    lies = [one for one in run.faults if one.fault == "net.answer-error"]
    cells = {(api, error) for api, errors in CELLS.items() for error in errors
             if error != STATIC or candidate.has_static_members}  # fmt: skip
    assert sorted((*one.apis, one.error) for one in lies) == sorted(cells)
    for lie in lies:  # of a member that a restart has down, for the process that comes then
        down = [one.at_ms for one in run.faults if one.fault == "member.restart"
                and one.target == lie.target and one.at_ms < lie.at_ms]  # fmt: skip
        assert lie.at_ms < max(down) + DOWN_S * 1000 < lie.at_ms + lie.for_ms


def test_a_member_that_is_closed_soon_shows_nothing(tmp_path):
    seen(tmp_path, LIE_MS + 1_000, "closing", "HEARTBEAT", [(*BEAT, AGAIN)])
    assert read(tmp_path) == []


def test_the_table_marks_what_kafkas_own_client_does_not_do():
    own, other = Did("HEARTBEAT", STATIC, "ends"), Did("HEARTBEAT", STATIC, "goes on")
    page = markdown({"mine": [other], "java": [own]}, {"mine": "./c", "java": "Java"}, "4.3.0")
    assert f"| `{STATIC}` | ends | **goes on** |" in page
    assert "| error | java | mine |" in page
    assert "| `UNKNOWN_MEMBER_ID` | not seen | not seen |" in page
