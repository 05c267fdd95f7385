"""Which profiles are served: those whose coordinator words its lines as from 4.0 on."""

from kafka_protocol.log_line import is_numbered
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import (
    KIP_345,
    PROFILE_NAMES,
    origin_of,
    profile_named,
)


def _is_served(name: str) -> bool:
    base = profile_named(name.removeprefix(f"{KIP_345.name}-"))
    release, coordinator = (base and origin_of(base)) or ("4.0.0", "java")
    return base is not None and coordinator == "java" and is_numbered(release)


SERVED = tuple(filter(_is_served, PROFILE_NAMES))
"""Their names; a full release such as `4.3.0-java` is served, too."""


def served(name: str) -> Profile:
    """Return the profile of a name. Raises ValueError, in one line, if it is not served."""
    profile = profile_named(name)
    if profile is None or not _is_served(name):
        raise ValueError(
            f"the oracle serves no profile {name!r}; choose one of {', '.join(SERVED)}"
        )
    return profile
