"""How templates become pages: a package's `templates`, in which a missing value is an error."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def environment_of(package: str) -> Environment:
    """Return the environment of the templates of a package; those of HTML escape values."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
