"""Where the content folders are: `traces/` and `archs/` of a checkout, or their copies inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

from perfvec.errors import FormatError

_PACKAGE = Path(__file__).resolve().parent


def content_folder(name: str) -> Path:
    """The folder `traces`, `archs` or `experiments`, wherever this installation keeps it.

    Raises:
        FormatError: Neither place has it.
    """
    for candidate in (_PACKAGE / "_content" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FormatError(f"the folder {name!r} is missing from this installation of perfvec; install it again")
