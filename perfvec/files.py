"""Files that are whole or absent, and HDF5 files that say what they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfvec.errors import FormatError

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it becomes `path` only if the block succeeds.

    Where the file system has files without a name (Linux), nothing is left even of a process that is killed.

    Args:
        path: The file to be written. Its folder must exist.

    Raises:
        FormatError: The folder does not exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FormatError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    umask = os.umask(0)
    os.umask(umask)
    with _nameless(target.parent) as nameless:
        temporary = Path(tempfile.mktemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
        try:
            yield nameless or temporary
            if nameless:
                os.link(nameless, temporary, follow_symlinks=True)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _nameless(folder: Path) -> Iterator[Path | None]:
    """A file in a folder that has no name yet, by its descriptor; None where there are no such files."""
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield Path(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


@contextmanager
def read_h5(path: str | Path, *, kind: str, versions: tuple[int, ...]) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading after checking its `format` and `format_version`.

    Args:
        path: The file.
        kind: The `format` attribute that the root group must have.
        versions: The `format_version` values that the caller reads.

    Raises:
        FormatError: The file is missing, damaged, of another kind or of an unknown version, or a
            dataset that the caller looks up is not there.
    """
    import h5py

    if not Path(path).is_file():
        raise FormatError(f"{path} does not exist or is not a file")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise FormatError(f"{path} is not a readable HDF5 file ({error}); write it again") from error
    with file:
        check_format(file, where=str(path), kind=kind, versions=versions)
        try:
            yield file
        except (KeyError, OSError) as error:
            raise FormatError(f"{path} is damaged: {error}; write it again") from error


def check_format(group: h5py.Group, *, where: str, kind: str, versions: tuple[int, ...]) -> None:
    """Refuse a group whose `format` and `format_version` attributes are not as expected.

    Raises:
        FormatError: They are not; the message has both.
    """
    found_kind = group.attrs.get("format")
    found_version = group.attrs.get("format_version")
    if found_kind != kind:
        raise FormatError(f"{where} holds {found_kind!r}, not {kind!r}; give a file written by the matching command")
    if found_version not in versions:
        allowed = ", ".join(map(str, versions))
        raise FormatError(
            f"{where} has {kind} format version {found_version}; this release reads {allowed}. "
            "Upgrade perfvec, or write the file again with this release."
        )


def array_of(group: h5py.Group, name: str) -> NDArray[Any]:
    """The contents of a dataset.

    Raises:
        FormatError: There is no dataset of that name.
    """
    import h5py

    item = group.get(name)
    if not isinstance(item, h5py.Dataset):
        raise FormatError(f"{group.file.filename} is damaged: it has no dataset {name!r}; write it again")
    return item[()]


def group_of(group: h5py.Group, name: str) -> h5py.Group:
    """A group inside another.

    Raises:
        FormatError: There is no group of that name.
    """
    import h5py

    item = group.get(name)
    if not isinstance(item, h5py.Group):
        raise FormatError(f"{group.file.filename} is damaged: it has no group {name!r}; write it again")
    return item
