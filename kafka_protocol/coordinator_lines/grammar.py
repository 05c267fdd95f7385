"""What a grammar consists of: templates of lines, and where a log begins and ends.

Each is a TOML file beside this module, `read` by its name. Its keys are the fields of `Grammar`,
but for these: `lines` are blocks of templates, each with the loggers that write them; `like` names
the grammar that it differs from, by the templates and reasons that are worded otherwise, and
those that it is `without`; `not_told` lists templates that `lines_instead` has None for.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from kafka_protocol.coordinator_lines.member_ids import without_ids
from kafka_protocol.coordinator_lines.template import CLIENT_REASON, Fields, Reason, Template


@dataclass(frozen=True)
class Grammar:
    """The lines of one coordinator.

    `prefix` has three groups: broker id, offsets partition, message; either of the first two may be
    empty. `printed_prefix` is the text before a group's lines, with `{broker}` and `{partition}`.
    `loggers` is what the names of the coordinator's loggers begin with; some write lines without
    the prefix, and those of `irrelevant_loggers` say nothing about a group's rebalances: a closed
    list. `reasons` are the classes of "Preparing to rebalance", each with the member it names.
    `first_line_end` ends the body of the first line of a broker process. `last_template` is its
    last line, which ends with `last_line_end`: a log that has both is whole.

    `lines_instead` names the templates that stand for others here, and `reasons_instead` the
    classes: the release does not tell them apart. None stands for a line that it does not write,
    that does not name its group, or that it writes for older records, too. `tells_bytes` is false
    where the request log gives only the length of metadata and assignments (see
    `request_log.text`).
    """

    coordinator: str
    prefix: str
    printed_prefix: str
    loggers: str
    loggers_without_prefix: tuple[str, ...]
    irrelevant_loggers: tuple[str, ...]
    templates: tuple[Template, ...]
    reasons: tuple[Reason, ...]
    first_line_end: str
    last_line_end: str
    last_template: str
    lines_instead: Mapping[str, str | None] = field(default_factory=dict)
    reasons_instead: Mapping[str, str] = field(default_factory=dict)
    tells_bytes: bool = True

    @cached_property
    def _templates(self) -> Mapping[str, Template]:
        return {template.name: template for template in self.templates}

    @cached_property
    def _reasons(self) -> Mapping[str, Reason]:
        return {reason.name: reason for reason in self.reasons}

    @cached_property
    def _classes(self) -> Sequence[tuple[re.Pattern[str], Reason]]:
        return [(re.compile(reason.regex, re.ASCII), reason) for reason in self.reasons]

    def template(self, name: str) -> Template:
        """Return the template of a name. Raises KeyError."""
        return self._templates[name]

    def reason(self, name: str) -> Reason:
        """Return the class of reasons of a name. Raises KeyError."""
        return self._reasons[name]

    def classed(self, reason: str) -> tuple[str, str] | None:
        """Return the class of the reason in a "Preparing" line, and the member that it names.

        None for a text of no class.
        """
        for pattern, one in self._classes:
            if match := pattern.match(reason):
                return one.name, match[1]
        return None

    def said(self, name: str, message: str) -> Fields:
        """Return what a message of the template of a name says, as `fields` does."""
        return self.fields(self.template(name), message)

    def fields(self, template: Template, message: str) -> Fields:
        """Return all fields of a template's message, and of the reason in it.

        `reason` is the class of the reason then, and its fields are beside it. That of no class is
        its own text without the ids of members, as `member` has them, and without what the client
        gave as its reason.
        """
        found = template.values(message)
        if "ending" in found:
            found["client_reason"] = found["ending"].partition(CLIENT_REASON)[2]
        if "reason" not in found:
            return found
        text = found["reason"]
        known = next((one for pattern, one in self._classes if pattern.match(text)), None)
        if known is not None:
            return found | known.values(text) | {"reason": known.name}
        own, _, given = text.partition(CLIENT_REASON)
        reason, members = without_ids(own)
        found |= {"reason": reason, "member": ", ".join(members)}
        return found | {"client_reason": given} if given else found

    def printed(self, name: str, broker: object, values: Mapping[str, object]) -> str:
        """Print a group's line, prefix and all. Raises as `Template.printed` does."""
        return self.printed_prefix.format(broker=broker, **values) + self.template(name).printed(
            values
        )


def united(grammars: Sequence[Grammar]) -> Grammar:
    """Return a grammar of all lines of some of one coordinator; those of the first come first."""
    return replace(
        grammars[0],
        templates=tuple(dict.fromkeys(t for one in grammars for t in one.templates)),
        reasons=tuple(dict.fromkeys(reason for one in grammars for reason in one.reasons)),
    )


@cache
def read(name: str) -> Grammar:
    """Return the grammar of a TOML file."""
    keys: dict[str, Any] = tomllib.loads((files(__package__) / f"{name}.toml").read_text("utf-8"))
    like = read(keys.pop("like")) if "like" in keys else None
    templates = tuple(
        Template(template, tuple(block["loggers"]), text)
        for block in keys.pop("lines", ())
        for template, text in block.items()
        if template != "loggers"
    )
    reasons: dict[str, str] = keys.pop("reasons", {})
    gone = {template.name for template in templates}.union(keys.pop("without", ()))
    if "not_told" in keys:
        not_told = dict.fromkeys(keys.pop("not_told"))
        keys["lines_instead"] = {**keys.get("lines_instead", {}), **not_told}
    if like is not None:
        templates = (*(kept for kept in like.templates if kept.name not in gone), *templates)
        reasons = {reason.name: reason.text for reason in like.reasons} | reasons
    keys = {key: tuple(value) if isinstance(value, list) else value for key, value in keys.items()}
    keys |= {"templates": templates, "reasons": tuple(map(Reason, reasons, reasons.values()))}
    return Grammar(**keys) if like is None else replace(like, **keys)
