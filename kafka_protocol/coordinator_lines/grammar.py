"""What a grammar consists of: templates of lines, and where a log begins and ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Template:
    """One line: `fields` name the regex's groups in their order. Messages are matched whole."""

    name: str
    loggers: tuple[str, ...]
    regex: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grammar:
    """The lines of one coordinator.

    `prefix` has three groups: broker id, offsets partition, message; either of the first two may be
    empty. `loggers` is what the names of the coordinator's loggers begin with; some write
    lines without the prefix, and those of `irrelevant_loggers` say nothing about a group's
    rebalances: a closed list. `reasons` are the
    classes of "Preparing to rebalance", each with the member it names (group 1). `first_words` is
    how the body of a broker's first line ends (a life of its log begins with each);
    `last_template` is its last line: a log is whole if it runs from the one to the other.

    `lines_instead` names the templates that stand for others here, and `reasons_instead` the
    classes: what they say is not told apart. None stands for a line that nobody writes, or that
    does not name its group. `tells_bytes` is false where the request log gives the length of
    metadata and assignments alone (see `request_text`).
    """

    coordinator: str
    prefix: str
    loggers: str
    loggers_without_prefix: tuple[str, ...]
    irrelevant_loggers: tuple[str, ...]
    templates: tuple[Template, ...]
    reasons: tuple[tuple[str, str], ...]
    first_words: str
    last_template: str
    lines_instead: Mapping[str, str | None] = field(default_factory=dict)
    reasons_instead: Mapping[str, str] = field(default_factory=dict)
    tells_bytes: bool = True
