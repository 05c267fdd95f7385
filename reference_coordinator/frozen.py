"""`replace_fields`: another frozen dataclass with some fields changed, at a fraction of the cost.

`dataclasses.replace` runs `__init__`, which took most of the time of a `step`. Type checkers take
this function for `dataclasses.replace`, so they check the names and the types of the fields; at run
time an unknown field is a TypeError.
"""

from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["replace_fields"]

Value = TypeVar("Value")

if TYPE_CHECKING:
    from dataclasses import replace as replace_fields
else:

    def replace_fields(value: Value, **fields: Any) -> Value:
        """Return a copy with other fields, of a frozen dataclass without slots or `__post_init__`.

        Raises TypeError for a field that the dataclass does not have.
        """
        copy: Value = object.__new__(type(value))
        values = vars(copy)
        values.update(vars(value))
        known = len(values)
        values.update(fields)
        if len(values) != known:
            unknown = ", ".join(sorted(fields.keys() - vars(value).keys()))
            raise TypeError(f"{type(value).__name__} has no field {unknown}")
        return copy
