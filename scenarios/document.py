"""A YAML document as plain data, with the line of every key and item."""

from collections.abc import Iterator
from typing import Any

import yaml

from scenarios.problems import Path, Problem, shown

MOST_VALUES = 100_000
"""The most keys and values of a document."""
_MOST_DIGITS = 100


class DocumentError(Exception):
    """Text that is not one YAML document; `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


class Document:
    """The data of one YAML document. Raises DocumentError if the text is not one, or a huge one.

    `data` is None for an empty document.
    """

    def __init__(self, text: str) -> None:
        try:
            loader = _Loader(text)
            self._keys: dict[yaml.Node, dict[str, tuple[yaml.Node, yaml.Node]]] = {}
            self._root: yaml.Node | None = loader.get_single_node()
            self.problems = tuple(_repeated_keys(self._root, (), set())) if self._root else ()
            self.data: Any = loader.construct_document(self._root) if self._root else None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = ", ".join(filter(None, (error.context, error.problem)))
            raise DocumentError(mark.line + 1 if mark else 1, what) from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise DocumentError(
                line, f"a character YAML forbids (code {error.character})"
            ) from error
        except RecursionError as error:
            raise DocumentError(1, "nested too deeply") from error

    def line_of(self, path: Path) -> int:
        """Return the line of a key or item, or of the nearest existing parent."""
        node, line = self._root, 1
        for part in path:
            if isinstance(node, yaml.MappingNode):
                if node not in self._keys:
                    # After a merge (`<<`) the mapping's own keys come last and win.
                    self._keys[node] = {str(pair[0].value): pair for pair in node.value}
                if str(part) not in self._keys[node]:
                    break
                place, node = self._keys[node][str(part)]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                place = node = node.value[part]
            else:
                break
            line = place.start_mark.line + 1
        return line


def _repeated_keys(node: yaml.Node, path: Path, visited: set[int]) -> Iterator[Problem]:
    """Yield the keys that a mapping has twice, of which YAML would drop one silently."""
    if id(node) in visited:  # an alias, maybe of something around it
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            yield from _repeated_keys(item, (*path, i), visited)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                here = (*path, key.value)
                if key.value in lines:
                    yield Problem(here, f"also on line {lines[key.value]}; remove one of the two")
                lines[key.value] = key.start_mark.line + 1
                yield from _repeated_keys(value, here, visited)


class _Loader(yaml.SafeLoader):
    """Reports the line of a value that looks like a date or number, or is tagged so, and is none.

    The parent class raises plain Python errors for such a value. It also reads a key such as `on`
    as a boolean (YAML 1.1); here it is text. It ends with the first value too many; what an
    alias repeats counts each time, as it does for all who walk the data.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = 0
        self._within: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        before, node = self._values, super().compose_node(parent, index)
        assert node is not None
        self._within[node] = max(self._within.get(node, 0), self._values - before + 1)
        self._values = before + self._within[node]
        if self._values > MOST_VALUES:
            what = f"more than {MOST_VALUES} values"
            raise yaml.composer.ComposerError(None, None, what, node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:bool":
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node.tag.endswith((":int", ":float")) and len(node.value) > _MOST_DIGITS:
            what = f"{shown(node.value)} has more than {_MOST_DIGITS} digits"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, OverflowError) as error:
            what = f"{shown(node.value)} is not the date or number it looks like"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error
