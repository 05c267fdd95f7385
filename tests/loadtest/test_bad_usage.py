import pytest


@pytest.mark.parametrize(
    ("arguments", "token", "error_line"),
    [
        ((), "", "--control-file needs a token in GROUPQUAKE_CONTROL_TOKEN"),
        (("--static-members", "0", "--dynamic-members", "0"), "t", "no members to run"),
        (
            ("--master", "--master-bind-port", "0", "--control-file", "/nowhere/port.json"),
            "t",
            "--control-file /nowhere/port.json: cannot",
        ),
        (("--experiment", "/nowhere/e.yaml"), "t", "/nowhere/e.yaml"),
        (("Producer",), "t", "no users of the named classes to run"),
    ],
    ids=["no token", "no members", "no folder", "no experiment", "no users"],
)
def test_bad_usage_ends_at_once_with_one_line(locust, arguments, token, error_line):
    child = locust("--headless", *arguments, token=token)
    assert child.process.wait(timeout=60) == 64
    assert f"groupquake: {error_line}" in child.output
    assert "Traceback" not in child.output
