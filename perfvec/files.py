"""Files that are whole or absent, and HDF5 files that say what they are."""

from __future__ import annotations

import os
import platform
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
    """Yield a temporary path beside `path`; rename it to `path` only if the block succeeds.

    What a process that was killed has left beside `path` is removed by the next that writes it.

    Args:
        path: The file to be written. Its folder must exist.

    Raises:
        FormatError: The folder does not exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FormatError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    beginning = f".{target.name}.{platform.node()}."
    _remove_left_over(target.parent, beginning)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{beginning}{os.getpid()}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes files private; the user asked for an ordinary one
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_left_over(folder: Path, beginning: str) -> None:
    """Remove temporary files whose process on this machine has ended."""
    for file in folder.iterdir():
        if file.name.startswith(beginning) and file.suffix == ".part":
            process = file.name.removeprefix(beginning).split(".")[0]
            if process.isdecimal() and not _is_running(int(process)):
                file.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name != "posix":  # where signal 0 is no question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


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


def is_readable_h5(path: str | Path, *, kind: str, versions: tuple[int, ...]) -> bool:
    """Whether `read_h5` would open the file."""
    try:
        with read_h5(path, kind=kind, versions=versions):
            return True
    except FormatError:
        return False
