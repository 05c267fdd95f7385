"""Frozen dataclasses at a fraction of the cost: `frozen_dataclass` and `replace_fields`.

`dataclass(frozen=True)` sets each field through a function call, and `dataclasses.replace` runs
`__init__`; both took most of the time of a `step`. Type checkers take `frozen_dataclass` for
`dataclass` and `replace_fields` for `dataclasses.replace`, so they refuse to assign to a field and
check the names and the types of the fields. At run time an assignment is not refused; an unknown
field is a TypeError.
"""

from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["frozen_dataclass", "replace_fields"]

Value = TypeVar("Value")

if TYPE_CHECKING:
    from dataclasses import dataclass as frozen_dataclass
    from dataclasses import replace as replace_fields
else:
    from dataclasses import dataclass

    def frozen_dataclass(*, frozen: bool, slots: bool = False) -> Any:
        """Decorate a class like `dataclass`; `frozen`, which must be true, is for type checkers."""
        assert frozen
        return dataclass(slots=slots, unsafe_hash=True)

    def replace_fields(value: Value, **fields: Any) -> Value:
        """Return a copy with other fields, of a frozen dataclass without slots or `__post_init__`.

        Raises TypeError for a field that the dataclass does not have.
        """
        before = value.__dict__
        after = before | fields
        if len(after) != len(before):
            unknown = ", ".join(sorted(fields.keys() - before.keys()))
            raise TypeError(f"{type(value).__name__} has no field {unknown}")
        copy: Value = object.__new__(type(value))
        copy.__dict__ = after
        return copy
