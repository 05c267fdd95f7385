from chaos.clusters.error_line import error_line


def test_the_exception_of_the_first_error_counts() -> None:
    log = (
        "[2026-11-21 11:51:25,900] WARN never mind (kafka.A)\n"
        "java.lang.IllegalStateException: handled\n"
        "[2026-11-21 11:51:25,990] ERROR Fatal error during broker startup. (kafka.B)\n"
        "org.apache.kafka.common.KafkaException: Class no.such.Reporter cannot be found\n"
        "\tat org.apache.kafka.A.b(A.java:1)\n"
        "Caused by: java.lang.ClassNotFoundException: no.such.Reporter\n"
        "[2026-11-21 11:51:25,995] ERROR stumbled in the shutdown (kafka.C)\n"
        "java.lang.NullPointerException: later\n"
    )
    assert error_line(log) == "KafkaException: Class no.such.Reporter cannot be found"


def test_a_tool_prints_its_exception_to_standard_error() -> None:
    printed = (
        'Exception in thread "main" org.apache.kafka.common.config.ConfigException:'
        " Invalid value nonsense for configuration process.roles\n"
        "\tat kafka.tools.StorageTool$.main(StorageTool.scala:46)\n"
    )
    assert error_line(printed) == (
        "ConfigException: Invalid value nonsense for configuration process.roles"
    )


def test_an_error_without_exception() -> None:
    log = "[2026-11-21 11:51:25,990] ERROR Port 1 is mine (kafka.B)\n[2026-11-21] INFO bye (k)\n"
    assert error_line(log) == "Port 1 is mine (kafka.B)"


def test_without_errors_the_end_is_quoted() -> None:
    assert error_line("one\ntwo\n\n") == "two"
    assert error_line(" \n") == "no output"
