"""Conditions that every database takes."""

from collections.abc import Collection

from sqlalchemy import Column, ColumnElement, bindparam


def among(column: Column[int], numbers: Collection[int]) -> ColumnElement[bool]:
    """Whether a column is one of these numbers.

    They are written into the statement: as parameters, databases take at most 32,766 or 65,535 of them.
    """
    return column.in_(bindparam(None, list(numbers), expanding=True, literal_execute=True))
