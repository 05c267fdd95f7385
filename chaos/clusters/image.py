"""The images that broker containers run: which one serves a release, and how ours is made.

Ours has the layout of `apache/kafka`: the jars in /opt/kafka/libs, a start script that reads
KAFKA_* variables at /etc/kafka/docker/run. A Debian root file system with a Java runtime lies
under the images of all releases and is made once, by mmdebstrap: no image registry is needed.
"""

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

import docker
from docker.errors import APIError, BuildError, ImageNotFound, NotFound
from docker.models.containers import Container

from chaos.clusters import jars
from chaos.clusters.clock import LIBRARY
from chaos.clusters.docker_engine import engine
from chaos.clusters.jars import Build
from chaos.clusters.releases import TEMPLATES, require_containers
from chaos.errors import ClusterError

_LIBS = PurePosixPath("/opt/kafka/libs")
"""Where an image has the jars."""
_SUITE = "bookworm"
_PACKAGES = "openjdk-17-jre-headless,iproute2,procps,libfaketime"
_BASE = f"groupquake/java:17-{_SUITE}-faketime"
"""Another name whenever other packages are in it: an image of that name is not made again."""

Progress = Callable[[str], None]


def own_name(version: str) -> str:
    """Return the name of the image that `build` makes."""
    return f"groupquake/kafka:{version}"


def choose(
    client: docker.DockerClient,
    version: str,
    requested: str | None,
    progress: Progress,
) -> str:
    """Return the image for a release: the requested one, else ours, else Apache Kafka's.

    One that is not in the engine is pulled, except ours. Raises ClusterError if there is none.
    """
    if requested is not None:
        require(client, requested, progress)
        return requested
    if _is_there(client, own_name(version)):
        return own_name(version)
    official = f"apache/kafka:{version}"
    try:
        require(client, official, progress)
    except ClusterError as error:
        raise ClusterError(
            f"{error}; make one with `groupquake dev image build --kafka {version}`,"
            " or name one with --image"
        ) from error
    return official


def command(client: docker.DockerClient, name: str) -> list[str]:
    """Return the command line that an image starts by default."""
    config = client.images.get(name).attrs["Config"]
    return [*(config["Entrypoint"] or ()), *(config["Cmd"] or ())]


def _is_there(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def require(client: docker.DockerClient, name: str, progress: Progress) -> None:
    """Pull an image unless the engine has it."""
    if _is_there(client, name):
        return
    progress(f"pulling {name}")
    try:
        client.images.pull(name)
    except APIError as error:
        raise ClusterError(
            f"no image {name}, and it cannot be pulled ({error.explanation})"
        ) from error


def require_library(
    client: docker.DockerClient, name: str, version: str, labels: Mapping[str, str]
) -> None:
    """Raise ClusterError unless an image has the library that sets the clock of a broker.

    Images of ours that were made before it was in them have none.
    """
    search = ["sh", "-c", f"ls /usr/lib/*/faketime/{LIBRARY}"]
    with _ended(client, name, search, labels) as (_, status):
        if status == 0:
            return
    if name == own_name(version):
        advice = f"make the image again with `groupquake dev image build --kafka {version}`"
    else:
        advice = (
            f"build it from one with Debian's package libfaketime, or make {own_name(version)}"
            f" with `groupquake dev image build --kafka {version}` and leave --image out"
        )
    raise ClusterError(f"{name} has no {LIBRARY}, which clock.skew needs; {advice}")


@contextmanager
def _ended(
    client: docker.DockerClient, name: str, command: list[str], labels: Mapping[str, str]
) -> Iterator[tuple[Container, int]]:
    """Run a command in a container of an image; yield the container and the exit code."""
    container = client.containers.create(name, entrypoint=command, command=[], labels=dict(labels))
    try:
        container.start()
        yield container, container.wait()["StatusCode"]
    finally:
        container.remove(force=True, v=True)


def of_image(name: str, progress: Progress) -> Build:
    """Return what an image holds, which is pulled unless the engine has it.

    Raises ClusterError if it holds no Kafka.
    """
    with engine() as client:
        require(client, name, progress)
        with _ended(client, name, ["ls", str(_LIBS)], {}) as (container, _):
            names = container.logs(stdout=True, stderr=False).decode(errors="replace").split()
            missing = f"{name} has no kafka_2.13 jar in {_LIBS}; build it as apache/kafka is"
            version = jars.version_among(names, missing)
            clients = partial(_copied, container, _LIBS / f"kafka-clients-{version}.jar")
            return Build(version, jars.commit_of(clients), name)


def _copied(container: Container, file: PurePosixPath) -> bytes:
    """Return a file of a container. Raises KeyError without it."""
    try:
        chunks, _ = container.get_archive(str(file))
    except NotFound:
        raise KeyError(file) from None
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        member = tar.extractfile(file.name)
        assert member is not None, "a jar is a file"
        return member.read()


def build(version: str, progress: Progress) -> str:
    """Make our image of a release and return its name; an image that exists is not made again.

    Raises ClusterError if the release is not run in containers, or the jars or the Debian packages
    are not available.
    """
    require_containers(version)
    with engine() as client:
        if not _is_there(client, _BASE):
            _build_base(client, progress)
        progress(f"Kafka {version}: getting the jars (downloaded once)")
        class_path = jars.class_path(version)
        progress(f"building {own_name(version)}")
        with tempfile.TemporaryFile() as context:
            with tarfile.open(fileobj=context, mode="w") as tar:
                for name in ("Dockerfile", "run-broker.sh"):
                    tar.add(TEMPLATES / name, name, filter=_for_everyone)
                for jar in class_path:
                    tar.add(jar, f"libs/{jar.name}", filter=_for_everyone)
            context.seek(0)
            try:
                client.images.build(
                    fileobj=context,
                    custom_context=True,
                    buildargs={"BASE": _BASE},
                    tag=own_name(version),
                    rm=True,
                )
            except BuildError as error:
                raise ClusterError(f"{own_name(version)} cannot be built: {error}") from error
    return own_name(version)


def _for_everyone(file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Let any user of the container read and run a file, whatever its mode here."""
    file.mode, file.uid, file.gid = 0o755, 0, 0
    return file


def _build_base(client: docker.DockerClient, progress: Progress) -> None:
    if shutil.which("mmdebstrap") is None:
        raise ClusterError(
            f"no mmdebstrap, which makes the root file system of {_BASE}; install it"
            " (apt-get install mmdebstrap), or let `groupquake run --image NAME` pull another"
        )
    progress(f"{_BASE}: making a root file system with mmdebstrap (half a minute, once)")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root.tar"
        made = subprocess.run(
            ["mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, root],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            errors = [line for line in made.stderr.splitlines() if line.startswith("E: ")]
            reason = (errors or ["no output"])[0].removeprefix("E: ")
            raise ClusterError(f"mmdebstrap cannot make the root file system of {_BASE}: {reason}")
        repository, tag = _BASE.split(":")
        client.api.import_image_from_file(str(root), repository, tag)
