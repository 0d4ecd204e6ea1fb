"""The user's own rows of the device table: measured launches, from which a vector follows with each model.

A row is a file NAME.h5 of measured times (perfvec-measured) in the user's data folder.
"""

from __future__ import annotations

from pathlib import Path

import platformdirs

from perfvec.arch.measured import MeasuredTable


def user_measured_folder() -> Path:
    """Where the rows are; it need not exist."""
    return Path(platformdirs.user_data_dir("perfvec")) / "measured"


def user_row_path(name: str) -> Path:
    """The file of a device's row."""
    return user_measured_folder() / f"{name}.h5"


def load_user_rows() -> dict[str, MeasuredTable]:
    """The rows by name of the device.

    Raises:
        FormatError: A file is damaged.
    """
    return {path.stem: MeasuredTable.load(path) for path in sorted(user_measured_folder().glob("*.h5"))}


def save_user_row(name: str, table: MeasuredTable) -> Path:
    """Write a device's row; returns its file.

    Raises:
        FormatError: The folder cannot be written to.
    """
    path = user_row_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.save(path)
    return path
