"""Failures: what Spark raises, put in one line that says what, where and what to do.

Spark wraps the cause of a failure several times, and each kind of session (a JVM of this process,
Spark Connect) in another way. What identifies a cause is its own text, which all of them keep.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EEXIST, ENOENT, ENOSPC, ENOTDIR, EROFS

from reports.ingest.archive import RELEASE
from reports.judgement.errors import EvidenceError, ExecutionError

ARCHIVE = (
    "leave `--archive none` out, or give their session what `groupquake dev spark-archive` writes"
    " (reports.ingest.archive.ship)"
)

_EXISTS_NOT = "{0}: no such file or folder; check it, and that Spark's driver and workers see it"
_CAUSES: tuple[tuple[type[Exception], str, str], ...] = (
    # the error; text of the cause, with groups; the error's line, with {place} and the groups' text
    (EvidenceError, r"reports\.judgement\.errors\.EvidenceError: ([^\n]+)", "{0}"),
    (EvidenceError, r"ModuleNotFoundError: No module named '([^']+)'",
     "Spark's workers have no Python module {0}; " + ARCHIVE),
    (EvidenceError, r"PYTHON_VERSION_MISMATCH\] ([^\n]*?\.)\s",
     "Spark's workers run another Python than this process: {0} " + ARCHIVE),
    (EvidenceError, r"(?:No port number in|Bad data in) pyspark\.daemon's standard output",
     (f"Spark's workers cannot start Python (groupquake runs on {RELEASE}; theirs must be of the"
     " same release, on their PATH); their log says why")),
    (EvidenceError, r'Cannot run program "([^"]+)"',
     "Spark's workers cannot run the program {0}; set PYSPARK_PYTHON to a Python they have; "
     + ARCHIVE),
    (ExecutionError, r"No space left on device|Disk quota exceeded",
     ("{place}: a disk is full: that of the output, or of Spark's own files (spark.local.dir); free"
     " space, then repeat the command")),
    (EvidenceError, r'No FileSystem for scheme "?([\w.+-]+)',
     ("{place}: Spark knows no file system {0}:; check the URI, or give Spark the package that"
     " reads it (spark.jars.packages)")),
    (EvidenceError, r"Class (org\.apache\.hadoop\.fs\.\S+) not found",
     ("{place}: Spark has no class {0}; give it the package that has it (spark.jars.packages; for"
     " s3a: org.apache.hadoop:hadoop-aws in the version of Spark's own Hadoop)")),
    (EvidenceError, r"UnknownHostException: ([^\s:]+)",
     "{place}: no host is called {0}; check the URI"),
    (EvidenceError, r"NoSuchBucket|UnknownStoreException|bucket does not exist",
     "{place}: no such bucket; check the URI and spark.hadoop.fs.s3a.endpoint"),
    (EvidenceError, (r"Permission denied|AccessControlException|AccessDenied|Access Denied"
     r"|403 Forbidden|Status Code: 403|NoAuthWithAWS|NoAwsCredentials|Unable to load credentials"),
     "{place}: no right to it; check the permissions, or the credentials that Spark is given"),
    (EvidenceError, r"PATH_ALREADY_EXISTS\] Path (\S+) already exists",
     "{0}: exists already; delete it, or give another output"),
    (EvidenceError, r"PATH_NOT_FOUND\] Path does not exist: (\S+?)\. ", _EXISTS_NOT),
    (EvidenceError, r"No such file or directory: '([^']+)'", _EXISTS_NOT),
    (EvidenceError, (r"Mkdirs failed to create|Read-only file system|ParentNotDirectoryException"
     r"|Not a directory|File exists"),
     ("{place}: cannot be written; check the folder, its permissions, and that every worker of"
     " Spark sees it")),
    (EvidenceError, (r"(?:Encountered error while reading file|File) (\S+?)\.? "
     r"(?:[^\n]*SQLSTATE|does not exist)"),
     ("{0}: a worker of Spark cannot read it ({cause}); check the file, and that every worker sees"
     " it")),
    (ExecutionError, (r"All masters are unresponsive|SparkContext (?:was|has been) (?:shut down"
     r"|stopped)|stopped SparkContext|StatusCode\.UNAVAILABLE|Connection refused|Connection reset"
     r"|while communicating with the Java server|Answer from Java side is empty"
     r"|dagScheduler\(\)\" is null|SESSION_CLOSED|SESSION_NOT_FOUND"),
     "Spark's cluster does not answer, or ended ({cause}); start it, then repeat the command"),
)  # fmt: skip
_OF_SPARK = ("pyspark", "py4j", "grpc")
_OF_DISKS = (ENOSPC, EDQUOT, EACCES, EROFS, ENOTDIR, EEXIST, ENOENT)
"""Errors of files that this process writes itself, or of the Spark that it starts."""
_LENGTH = 300


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn what Spark raises into EvidenceError or ExecutionError; `place` is what it works on.

    So are errors of files that this process cannot write, since a disk is full or not its own.
    """
    try:
        yield
    except Exception as error:
        of_spark = type(error).__module__.partition(".")[0] in _OF_SPARK
        if of_spark or isinstance(error, ConnectionError):  # to Spark's JVM
            raise explanation(str(error) or repr(error), place) from error
        if isinstance(error, OSError) and error.errno in _OF_DISKS:
            raise explanation(str(error), str(error.filename or place)) from error
        raise


def explanation(text: str, place: str) -> Exception:
    """Return the error that says what a text of Spark's means."""
    for kind, pattern, line in _CAUSES:
        if found := re.search(pattern, text):
            return kind(line.format(*found.groups(), place=place, cause=_cause(text)))
    return ExecutionError(f"{place}: Spark failed ({_cause(text)}); its log says more")


def _cause(text: str) -> str:
    """Return the innermost cause in a text of Spark's, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    frames = ("at ", "...", "File ", "During handling", "Driver stacktrace", "JVM stacktrace")
    causes = [line for line in lines if not line.startswith(frames)] or lines or ["no reason given"]
    inner = [line for line in causes if line.startswith("Caused by: ")]
    wrapped = [line for line in causes if line.startswith(": ")]
    if inner or wrapped:
        line = (inner or wrapped)[-1].removeprefix("Caused by: ").removeprefix(": ")
    else:
        line = causes[-1] if "Traceback" in text else causes[0]
    return line if len(line) <= _LENGTH else f"{line[:_LENGTH]}…"
