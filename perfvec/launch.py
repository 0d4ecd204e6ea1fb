"""A launch: everything that is needed to run a kernel once, on any device or on none."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arguments import Argument, LocalArg, contents_of, parse_argument, with_data
from perfvec.errors import FormatError, LaunchError
from perfvec.files import array_of, check_format, group_of, read_h5, whole_file

if TYPE_CHECKING:
    import h5py

FORMAT = "perfvec-launch"
FORMAT_VERSION = 1
MAX_LOCAL_SIZE = 1024
DEFAULT_LOCAL_SIZE = 256
# First bytes of files.
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_SPIR_V = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_IR_SUFFIXES = (".ll", ".bc")
_IR_LINE = re.compile(
    r'^(?:; ModuleID = |source_filename = "|target (?:datalayout|triple) = "|define .*\{ *$)', re.MULTILINE
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel launch.

    Attributes:
        source: The program: text of OpenCL C or of LLVM IR in the SPIR-64 form, or bytes of its bitcode.
        kernel_name: The kernel to run.
        args: One argument per kernel parameter, in order.
        global_size: Work-items in one to three dimensions.
        local_size: Work-items of a work-group; as many dimensions, each dividing the global size.
        global_offset: First global id in each dimension; zeros unless given.
        build_options: Passed to the compiler, such as `-DTILE=16`.
        source_name: What to call the source in messages, usually its file name.
    """

    source: str | bytes
    kernel_name: str
    args: tuple[Argument, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    global_offset: tuple[int, ...] = ()
    build_options: tuple[str, ...] = ()
    source_name: str = "kernel.cl"

    def __post_init__(self) -> None:
        dims = len(self.global_size)
        if not 1 <= dims <= 3:
            raise LaunchError(f"global size {self.global_size} has {dims} dimensions; OpenCL allows 1 to 3")
        if len(self.local_size) != dims:
            raise LaunchError(f"local size {self.local_size} and global size {self.global_size} differ in dimensions")
        if not self.global_offset:
            object.__setattr__(self, "global_offset", (0,) * dims)
        if len(self.global_offset) != dims or min(self.global_offset) < 0:
            raise LaunchError(f"global offset {self.global_offset} needs {dims} numbers of 0 or more")
        for size, group in zip(self.global_size, self.local_size, strict=True):
            if size < 1 or group < 1 or size % group:
                raise LaunchError(
                    f"global size {self.global_size} is not a multiple of local size {self.local_size} in every "
                    "dimension; OpenCL 1.2 requires it. Round the global size up and guard the kernel by its bounds."
                )
        if math.prod(self.local_size) > MAX_LOCAL_SIZE:
            raise LaunchError(
                f"local size {self.local_size} has {math.prod(self.local_size)} work-items; at most {MAX_LOCAL_SIZE} "
                "are allowed"
            )

    @property
    def num_work_items(self) -> int:
        """Work-items of the whole launch."""
        return math.prod(self.global_size)

    @property
    def num_groups(self) -> tuple[int, ...]:
        """Work-groups in each dimension."""
        return tuple(size // group for size, group in zip(self.global_size, self.local_size, strict=True))

    @property
    def buffer_bytes(self) -> int:
        """Bytes of all global and constant buffers together, and of images."""
        return sum(contents.num_bytes for contents in map(contents_of, self.args) if contents is not None)

    @property
    def local_arg_bytes(self) -> int:
        """Bytes of local memory passed as arguments."""
        return sum(arg.num_bytes for arg in self.args if isinstance(arg, LocalArg))

    def recipe(self) -> dict[str, object]:
        """The launch without its source text and given data: short, readable, enough to name it in a table."""
        return {
            "kernel_name": self.kernel_name,
            "args": [str(arg) for arg in self.args],
            "global_size": list(self.global_size),
            "local_size": list(self.local_size),
            "global_offset": list(self.global_offset),
            "build_options": list(self.build_options),
        }

    @property
    def digest(self) -> str:
        """16 hex digits that name the launch by content: source, recipe and given data."""
        state = hashlib.sha256(_source_bytes(self.source))
        state.update(json.dumps(self.recipe(), sort_keys=True).encode())
        for contents in map(contents_of, self.args):
            if contents is not None and contents.data is not None:
                state.update(contents.data)
        return state.hexdigest()[:16]

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        kernel_name: str,
        args: tuple[str | Argument, ...] | list[str] = (),
        global_size: int | tuple[int, ...],
        local_size: int | tuple[int, ...] | None = None,
        global_offset: tuple[int, ...] = (),
        build_options: tuple[str, ...] = (),
    ) -> Launch:
        """Make a launch of a kernel in a file, with arguments in their string form.

        Args:
            path: File of OpenCL C, LLVM IR (`.ll`) or LLVM bitcode (`.bc`).
            kernel_name: The kernel to run.
            args: Arguments as strings such as `buffer:float32:1024` (see `perfvec.arguments`) or objects.
            global_size: Work-items in one to three dimensions.
            local_size: Work-group size; chosen by `default_local_size` where it is None.
            global_offset: First global id in each dimension.
            build_options: Passed to the compiler.

        Raises:
            LaunchError: The file cannot be read, or an argument or size is not allowed.
        """
        sizes = (global_size,) if isinstance(global_size, int) else tuple(global_size)
        if local_size is None:
            local_size = default_local_size(sizes)
        groups = (local_size,) if isinstance(local_size, int) else tuple(local_size)
        parsed = tuple(parse_argument(arg, position=i) if isinstance(arg, str) else arg for i, arg in enumerate(args))
        return cls(
            source=read_source(path),
            kernel_name=kernel_name,
            args=parsed,
            global_size=sizes,
            local_size=groups,
            global_offset=global_offset,
            build_options=build_options,
            source_name=Path(path).name,
        )

    def save(self, path: str | Path) -> None:
        """Write the launch to an HDF5 file, whole or not at all.

        Raises:
            FormatError: The folder does not exist.
        """
        import h5py

        with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
            write_launch(file, self)

    @classmethod
    def load(cls, path: str | Path) -> Launch:
        """Read a launch back.

        Raises:
            FormatError: The file is missing, damaged, of another kind or version.
        """
        with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            return read_launch(file)


def read_source(path: str | Path) -> str | bytes:
    """Read a program from a file: text, or bytes where it is LLVM bitcode.

    Raises:
        LaunchError: The file cannot be read, or is neither OpenCL C nor LLVM IR.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise LaunchError(f"cannot read kernel source {path}: {error}") from error
    if data.startswith(_BITCODE):
        return data
    allowed = "allowed are OpenCL C, LLVM IR (.ll) and LLVM bitcode (.bc)"
    if data.startswith(_SPIR_V):
        raise LaunchError(f"{path} is SPIR-V; {allowed}. Turn it into bitcode: llvm-spirv -r {path} -o kernel.bc")
    if b"\0" in data:
        raise LaunchError(f"{path} is a binary file of a kind that is not known; {allowed}")
    text = _decoded(data).replace("\r\n", "\n")
    if Path(path).suffix in _IR_SUFFIXES and not is_llvm_ir(text):
        raise LaunchError(f"{path} holds no LLVM IR, found {text[:40]!r}; {allowed}; name OpenCL C .cl")
    return text


def _decoded(data: bytes) -> str:
    """Text of UTF-8, or of Latin-1, in which old sources have names in comments."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def is_llvm_ir(source: str | bytes) -> bool:
    """Whether a program is LLVM IR, as text or as bitcode, and not OpenCL C."""
    return isinstance(source, bytes) or _IR_LINE.search(source) is not None


def _source_bytes(source: str | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.encode()


def default_local_size(global_size: tuple[int, ...]) -> tuple[int, ...]:
    """The largest divisor of the first dimension up to 256; one in the others."""
    first = max(size for size in range(1, DEFAULT_LOCAL_SIZE + 1) if global_size[0] % size == 0)
    return (first, *(1 for _ in global_size[1:]))


def write_launch(group: h5py.Group, launch: Launch) -> None:
    """Store a launch in an HDF5 group (docs/format.md, perfvec-launch)."""
    group.attrs["format"] = FORMAT
    group.attrs["format_version"] = FORMAT_VERSION
    group.attrs["recipe"] = json.dumps(launch.recipe())
    group.attrs["source_name"] = launch.source_name
    # Bytes in a dataset, not an attribute: HDF5 attributes end at 64 KiB, sources do not.
    group.create_dataset("source", data=np.frombuffer(_source_bytes(launch.source), np.uint8), compression="gzip")
    for index, contents in enumerate(map(contents_of, launch.args)):
        if contents is not None and contents.data is not None:
            given = np.frombuffer(contents.data, np.uint8)
            data = group.create_dataset(f"data/{index}", data=given, compression="gzip")
            data.attrs["units"] = "bytes"


def read_launch(group: h5py.Group) -> Launch:
    """Read a launch from an HDF5 group.

    Raises:
        FormatError: The group is of another kind or version, or its contents contradict each other.
    """
    check_format(group, where=str(group.file.filename), kind=FORMAT, versions=(FORMAT_VERSION,))
    try:
        recipe = json.loads(str(group.attrs["recipe"]))
        args = [parse_argument(text, position=i) for i, text in enumerate(recipe["args"])]
        for name in map(str, group_of(group, "data") if "data" in group else ()):
            args[int(name)] = with_data(args[int(name)], array_of(group, f"data/{name}").tobytes())
        source = array_of(group, "source").tobytes()
        return Launch(
            source=source if source.startswith(_BITCODE) else source.decode(),
            kernel_name=recipe["kernel_name"],
            args=tuple(args),
            global_size=tuple(recipe["global_size"]),
            local_size=tuple(recipe["local_size"]),
            global_offset=tuple(recipe["global_offset"]),
            build_options=tuple(recipe["build_options"]),
            source_name=str(group.attrs["source_name"]),
        )
    except (KeyError, ValueError, IndexError, TypeError, LaunchError) as error:
        raise FormatError(f"{group.file.filename} holds a damaged launch: {error}; write it again") from error
