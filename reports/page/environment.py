"""How templates become pages: a package's `templates`, in which a missing value is an error.

What others chose is shown as `printable` does, and escaped for HTML or Markdown.
"""

import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    PackageLoader,
    StrictUndefined,
    pass_eval_context,
    select_autoescape,
)
from jinja2.nodes import EvalContext
from markupsafe import Markup

from kafka_protocol.printable import printable
from reports.page import wording


def environment_of(*packages: str) -> Environment:
    """Return the environment of the templates of packages; of one name, the first's.

    It has filters that write numbers.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=select_autoescape(["html.j2"]),
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for write in (wording.counted, wording.day, wording.seconds, wording.utc):
        environment.filters[write.__name__] = write
    return environment


def page_of(environment: Environment, template: str, **values: Any) -> str:
    """Render a page; in HTML it runs and loads nothing but what its template has inline.

    A Content-Security-Policy says so. It has the hashes of what the template passes through the
    filter `inline`, and not of what a value may have smuggled into the finished page.
    """
    rules = {"script": "script-src", "style": "style-src", "icon": "img-src data:"}

    def inline(content: str, tag: str) -> Markup:
        rules[tag] += f" {_hash(content)}"
        return Markup(f"<{tag}>{content}</{tag}>")  # noqa: S704 (escaped in the template)

    environment.filters["inline"] = inline
    page = environment.get_template(template).render(values)
    policy = "; ".join(["default-src 'none'; base-uri 'none'; form-action 'none'", *rules.values()])
    head = f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace("<head>", head, 1)  # before any value


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@pass_eval_context
def _shown(context: EvalContext, value: Any) -> Any:
    """Show a value: in HTML it may have several lines, in Markdown it stands within one."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if context.autoescape:
        return "\n".join(map(printable, value.split("\n")))
    return re.sub(r"[\\`*_\[\]<>|~&]", r"\\\g<0>", printable(value))
