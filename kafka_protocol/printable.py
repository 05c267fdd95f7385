"""How text is shown that others chose: client ids, group ids, hosts, topics, errors, files.

It may have any character. ESC and U+009B command a terminal, CR and LF begin a line, and bidi
controls reorder one: written as they are, they forge what a reader sees.
"""

from collections.abc import Sequence

FEW = 5  # so many names stand in a line


def shortened(names: Sequence[str], noun: str = "members") -> str:
    """Return names for a line: `a, b`; of many their number, and the first and the last."""
    if len(names) <= FEW:
        return ", ".join(names)
    return f"{len(names):,} {noun}: {names[0]} … {names[-1]}"


def printable(text: str) -> str:
    """Return a text in one line; what does not print, but for the space, is a Python escape."""
    shown = (c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if text.isprintable() else "".join(shown)
