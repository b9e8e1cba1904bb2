"""Names of a table's columns, each of which must be there, and once; knows nothing of files' formats."""

from collections.abc import Sequence

from .._files import InputError


def check_names(names: Sequence[str], place: str) -> None:
    """Holds the names of columns against each other: pandas gives a blank or repeated one a name of its own.

    Args:
        names: the names, in the order of the columns.
        place: file and line, to begin a complaint with.

    Raises:
        InputError: a name is blank or was given before.
    """
    first: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(f"{place}: column {number} has no name; every column needs one")
        if name in first:
            raise InputError(
                f"{place}: column {name!r} is there twice, as columns {first[name]} and {number}; "
                "every column needs a name of its own"
            )
        first[name] = number
