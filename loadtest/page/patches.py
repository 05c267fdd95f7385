"""Differences of JSON values, small enough to send at every change.

A patch of an object is an object: a patch for each key that changed, null for each that is gone. A
patch of an array has its indexes as keys, and the new `length` if that got smaller. A value that is
replaced, or new, stands in an array of its own: `[value]`.
"""

from typing import Any

Patch = dict[str, Any] | list[Any]
_ABSENT = object()
"""What a key that is new had before: it equals nothing."""


def difference(old: Any, new: Any) -> Patch:
    """Return the patch that makes `new` of `old`; of equal values it is empty."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = ((key, old.get(key, _ABSENT), value) for key, value in new.items())
        changed = {key: difference(was, value) for key, was, value in pairs if was != value}
        return changed | dict.fromkeys(old.keys() - new.keys())
    if isinstance(old, list) and isinstance(new, list):
        known = zip(old, new, strict=False)
        patch = {str(at): difference(*pair) for at, pair in enumerate(known) if pair[0] != pair[1]}
        patch |= {str(at): [new[at]] for at in range(len(old), len(new))}
        return patch | ({"length": [len(new)]} if len(new) < len(old) else {})
    return [new] if old != new else {}


def apply(value: Any, patch: Patch) -> Any:
    """Return what the patch makes of a value; objects and arrays are changed in place."""
    if isinstance(patch, list):
        return patch[0]
    for key, change in patch.items():
        if isinstance(value, dict):
            if change is None:
                del value[key]
            else:
                value[key] = apply(value.get(key), change)
        elif key == "length":
            del value[change[0] :]
        elif (at := int(key)) < len(value):
            value[at] = apply(value[at], change)
        else:
            value.append(change[0])
    return value
