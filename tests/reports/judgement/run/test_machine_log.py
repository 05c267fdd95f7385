"""What held brokers up, as the machine's samples and the JVMs' logs have it."""

import json
from math import inf

import pytest

from reports.judgement.run import machine_log
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.machine_log import busy as busy_time
from reports.judgement.run.machine_log import unsampled

# a JVM of Debian, 17.0.15, -XX:+UseSerialGC; times made longer
JVM = """\
[1795363009003ms][safepoint,cleanup] updating inline caches, 0.0001318 secs
[1795363009003ms][safepoint,stats  ] ICBufferFull  [  11  0 ][ 2564 185637 1603 189804 ] 0
[1795363009003ms][safepoint        ] Safepoint "ICBufferFull", Time since last: 670319251 ns, \
Reaching safepoint: 2564 ns, Cleanup: 185637 ns, At safepoint: 1603 ns, Total: 189804 ns
[1795363010003ms][safepoint        ] Safepoint "GenCollectFull", Time since last: 670319251 ns, \
Reaching safepoint: 640000000 ns, Cleanup: 185637 ns, At safepoint: 1603 ns, Total: 650000000 ns
[1795363011035ms][gc,start         ] GC(0) Pause Young (Allocation Failure)
[1795363011066ms][gc               ] GC(0) Pause Young (Allocation Failure) 68M->53M(247M) 30.935ms
[1795363012066ms][gc               ] GC(1) Pause Full (System.gc()) 68M->53M(247M) 230.500ms
""".splitlines()


def standstill(broker: str, from_ms: float, until_ms: float, cause: str) -> Disturbance:
    return Disturbance(broker, from_ms, until_ms, cause, Source.STANDSTILL)


def text(*entries: dict) -> list[dict]:
    """Return the entries as they are read of a file."""
    lines = (json.dumps({"at_ms": 1, **entry}) + "\n" for entry in entries)
    found, account = machine_log.read("".join(lines).encode())
    assert (account.lines, account.damaged) == (len(entries), 0)
    return found


def test_long_pauses_of_a_jvm_are_standstills():
    assert machine_log.of_jvm("2", JVM) == [
        standstill(
            "2", 1795363009353.0, 1795363010003.0, "its JVM was at a safepoint (GenCollectFull)"
        ),
        standstill("2", 1795363011835.5, 1795363012066.0, "its JVM collected garbage (Pause Full)"),
    ]


def test_safepoints_as_jdk_21_writes_them():
    words = (
        '[1795363010003ms][safepoint   ] Safepoint "G1CollectForAllocation", Time since last:'
        " 1 ns, Reaching safepoint: 2 ns, At safepoint: 3 ns, Leaving safepoint: 4 ns,"
        " Total: 200000000 ns"
    )
    (found,) = machine_log.of_jvm("1", [words])
    assert found.until_ms - found.from_ms == 200.0


LATE = {"event": "late", "from_ms": 1_000, "until_ms": 2_500}
STOPPED = {"event": "stopped", "broker": "1", "from_ms": 1_000, "until_ms": 2_000}
SAMPLE = {"event": "sample", "at_ms": 2_000, "interval_ms": 1_000}


def test_a_stopped_process_is_a_standstill():
    found = machine_log.standstills(text(STOPPED, STOPPED | {"until_ms": 1_050}, LATE))
    assert found == [standstill("1", 1_000, 2_000, "its process was stopped")]


@pytest.mark.parametrize(
    ("late", "expected_ms"),
    [([], 1_000.0), ([300, 200], 1_300.0), ([1_900], 2_900.0), ([2_100], 0.0)],
)
def test_the_runner_shows_how_late_its_machine_is(late, expected_ms):
    """From 3 s on writes may fail, which is no matter of lateness alone."""
    samples = text(*({"event": "late", "from_ms": 1_000, "until_ms": 1_000 + ms} for ms in late))
    assert machine_log.late_ms(samples, [busy_time(0, 2_000, "busy")]) == expected_ms
    unknown = [busy_time(0, inf, "no samples"), busy_time(0, 2_000, "throttled", "1")]
    assert machine_log.late_ms(samples, unknown) == machine_log.late_ms(samples, []) == 0.0


@pytest.mark.parametrize(
    ("sample", "because", "broker"),
    [
        (SAMPLE | {"cpu_waiting": 0.79, "cpu_stolen": 0.2, "throttled_ms": {"1": 200}, "load": 40},
         None, ""),
        (SAMPLE | {"cpu_waiting": 0.85}, "something waited for a CPU in 85% of the time", ""),
        (SAMPLE | {"cpu_stolen": 0.3}, "the hypervisor gave 30% of the CPU time to others", ""),
        (SAMPLE | {"throttled_ms": {"2": 400, "runner": 900}},
         "its control group was throttled for 400 ms", "2"),
        (LATE | {"until_ms": 2_000}, "the runner itself ran 1,000 ms late", ""),
    ],
    ids=["less", "pressure", "steal", "throttling", "the runner"],
)  # fmt: skip
def test_what_shows_a_busy_machine(sample, because, broker):
    expected = [] if because is None else [busy_time(1_000, 2_000, because, broker)]
    assert machine_log.busy_times(text(sample)) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[1]", "no JSON object"),
        (b'{"at_ms": 1, "event": "la', "no JSON (Input data was truncated)"),
        (b'{"at_ms": 1, "event": "stopped", "broker": 1, "from_ms": 1, "until_ms": 900}',
         "'broker' is of the wrong type"),
        (b'{"at_ms": 1, "event": "late", "from_ms": "1", "until_ms": 900}',
         "'from_ms' is of the wrong type"),
        (b'{"at_ms": null, "event": "sample", "interval_ms": 1}', "'at_ms' is of the wrong type"),
        (b'{"at_ms": 1, "event": "sample", "interval_ms": 1, "throttled_ms": [1]}',
         "'throttled_ms' is of the wrong type"),
        (b'{"at_ms": 1, "event": "sample", "interval_ms": NaN}',
         "no JSON (JSON is malformed: invalid character (byte 47))"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_understood_is_counted(line, why):
    good = b'{"at_ms": 1, "event": "sample", "interval_ms": 0, "cpu_waiting": 1}'
    samples, account = machine_log.read(b"\n".join([good, line, good, line, good]))
    assert len(samples) == 3
    assert machine_log.busy_times(samples) == []
    assert account.doubts("f") == [f"f:2 not understood ({why}); 2 such lines"]


@pytest.mark.parametrize(
    ("last_ms", "since_ms"),
    [(8_000, None), (7_999, 7_999), (None, -inf)],
    ids=["to the end", "ends early", "none"],
)
def test_without_samples_up_to_the_teardown_the_machine_may_be_busy(last_ms, since_ms):
    late = LATE | {"from_ms": 6_000, "until_ms": 7_000}
    samples = [] if last_ms is None else text(SAMPLE | {"at_ms": last_ms}, late)
    found = [(one.broker, one.from_ms, one.until_ms) for one in unsampled(samples, 10_000)]
    assert found == ([] if since_ms is None else [("", since_ms, inf)])


@pytest.mark.parametrize(
    "changed",
    [
        {"event": "late", "from_ms": 0, "until_ms": 10**310},
        {"event": "stopped", "broker": "1", "from_ms": -(10**310), "until_ms": 0},
        {"event": "sample", "interval_ms": 10**400},
        {"event": "sample", "interval_ms": 1, "cpu_stolen": 10**400},
        {"event": "sample", "interval_ms": 1, "cpu_waiting": 10**400},
    ],
)
def test_numbers_that_nobody_can_compute_with_are_not_understood(changed):
    found, account = machine_log.read(json.dumps({"at_ms": 1} | changed).encode())
    assert (found, account.damaged) == ([], 1)


@pytest.mark.parametrize("throttled_ms", [10**400, -(10**400), "5", None, [5]])
def test_a_throttled_time_is_any_json(throttled_ms):
    sample = {"event": "sample", "interval_ms": 1, "throttled_ms": {"1": throttled_ms}}
    assert len(machine_log.busy_times(text(sample))) == (throttled_ms == 10**400)


@pytest.mark.parametrize("until_ms", ["5", [5], None, 10**400])
def test_of_events_that_are_not_known_only_the_time_is_read(until_ms):
    (found,) = unsampled(text({"event": "unheard", "until_ms": until_ms}), 10_000)
    assert (found.from_ms, found.until_ms) == (1, inf)
