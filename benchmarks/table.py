"""Formats figures as a table."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place == 0 else word.rjust(width)
            for place, (word, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
