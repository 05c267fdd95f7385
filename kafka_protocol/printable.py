"""How text is shown that others chose: client ids, group ids, hosts, topics, errors, files.

It may have any character. ESC and U+009B command a terminal, CR and LF begin a line, and bidi
controls reorder one: written as they are, they forge what a reader sees.
"""


def printable(text: str) -> str:
    """Return a text in one line; what does not print, but for the space, is a Python escape."""
    shown = (c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if text.isprintable() else "".join(shown)
