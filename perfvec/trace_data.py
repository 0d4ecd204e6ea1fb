"""Trace: what the sub-groups of a launch executed, device independent, and its HDF5 file (docs/format.md).

A traced sub-group's instruction stream is cut into windows. Equal windows are stored once; a stream is a list of
window numbers. Weights say how much of the launch each traced sub-group stands for.

The module is not called `trace`, so that `perfvec.trace` can be the function (docs/decisions.md).
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.errors import FormatError
from perfvec.files import array_of, group_of, read_h5, whole_file
from perfvec.launch import Launch, read_launch, write_launch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import h5py
    from numpy.typing import NDArray

FORMAT = "perfvec-trace"
FORMAT_VERSION = 2

SUB_GROUP_SIZE = 32
SECTOR_BYTES = 32
LINE_BYTES = 128

OPCODE_CLASSES = (
    "add",  # addition, subtraction, negation, minimum, maximum
    "mul",
    "fma",
    "div",  # division and remainder
    "sqrt",  # square root and its reciprocal
    "special",  # transcendental functions at full precision
    "native",  # transcendental functions at the device's own precision (native_, half_)
    "compare",
    "logic",  # and, or, xor, bit counts
    "shift",
    "convert",
    "select",
    "vector",  # insert, extract, shuffle of vector elements
    "address",  # pointer arithmetic
    "branch",
    "return",
    "barrier",
    "fence",
    "load",
    "store",
    "atomic",
    "copy",  # block copies: memcpy, async_work_group_copy
    "prefetch",
    "image",
    "sub_group",  # cross-lane operations
    "work_item",  # ids and sizes
    "other",
)
VALUE_KINDS = ("none", "int", "float", "pointer")
ADDRESS_SPACES = ("none", "private", "global", "constant", "local", "generic")
# How the lanes' addresses of one access relate, in units of the access size.
STRIDE_CLASSES = ("none", "uniform", "unit", "small", "large", "irregular")
NO_MEMORY = -1

STATIC_DTYPE = np.dtype(
    [
        ("opcode_class", "u1"),  # index into OPCODE_CLASSES
        ("value_kind", "u1"),  # index into VALUE_KINDS: of the result, or of the value stored
        ("bits", "u1"),  # width of one scalar of that value
        ("vector_width", "u1"),  # scalars of that value
        ("address_space", "u1"),  # index into ADDRESS_SPACES
        ("access_bytes", "u2"),  # bytes that each lane moves
        ("contention", "f4"),  # atomics: operations on the address of one, on average; see program/contention.py
        ("is_used", "?"),  # whether another instruction reads the result; devices need not return that of an atomic
        ("block", "u4"),  # basic block, in execution order preference
        ("source_line", "i4"),  # 0 where unknown
        ("producers", "i4", (3,)),  # static instructions that make the operands; -1 where none
    ]
)
MEMORY_DTYPE = np.dtype(
    [
        ("sectors", "u2"),  # distinct 32 B sectors that the sub-group touches
        ("lines", "u2"),  # distinct 128 B lines
        ("sectors_8", "u2"),  # the same if sub-groups had 8 lanes: added up over runs of 8 lanes; 0 in private memory
        ("lines_8", "u2"),
        ("sectors_16", "u2"),  # and of 16 lanes
        ("lines_16", "u2"),
        ("bank_passes", "u1"),  # local memory: passes over 32 banks of 4 B; else 0
        ("same_address", "u1"),  # atomics: most lanes on one address
        ("distinct_addresses", "u1"),  # atomics: addresses of the lanes
        ("stride_class", "u1"),  # index into STRIDE_CLASSES
        ("reuse_work_group", "u1"),  # 1 + floor(log2(1 + stack distance in lines)) in the work-group; 0 at first touch
        ("reuse_device", "u1"),  # the same in lines that later traced work-groups touched; see core/lines.py
        ("cold_sectors_work_group", "u2"),  # sectors that this work-group touches for the first time
        ("cold_sectors_device", "u2"),  # sectors that no traced work-group has touched before
    ]
)
SUB_GROUP_DTYPE = np.dtype(
    [
        ("work_group", "i8"),  # linear number of its work-group
        ("index", "u2"),  # its place in the work-group
        ("num_instructions", "i8"),
        ("weight", "f8"),  # sub-groups of the launch that it stands for
    ]
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """What every instruction of a launch has in common. Counts and bytes; all device independent."""

    num_work_items: int
    num_work_groups: int
    sub_groups_per_group: int
    local_size: int
    num_dims: int
    local_mem_bytes: int  # of a work-group: declared and passed
    private_mem_bytes: int  # of a work-item: arrays that did not become registers
    live_registers: int  # most 32-bit registers live at once in a work-item
    buffer_bytes: int  # of all buffers together
    footprint_bytes: float  # distinct bytes touched by the launch, estimated
    static_instructions: int
    mean_instructions: float  # of a sub-group
    max_instructions: float
    instructions_spread: float  # standard deviation between sub-groups ÷ mean
    # Atomic operations on the address of one, on average: of the launch on global memory, lanes of a sub-group on one
    # address counted once, or each; of the work-group on local memory, counted once. See program/contention.py.
    atomic_contention: float
    atomic_lane_contention: float
    local_atomic_contention: float
    hottest_atomics: float  # of the launch on the global address with most, one after another
    mean_lanes: float  # active lanes of a sub-group instruction
    split_share: float  # of a sub-group's executions of branches: its lanes go different ways
    branch_entropy: float  # bits, of the ways that a branch's lanes go, averaged over executions
    # Whether the trace stands for the whole launch, and why not if not; "" where it does.
    caveat: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A trace without its windows and streams, which may have gone to a file; fields as in `Trace`.

    Attributes:
        num_recorded: Sub-group instructions in the streams.
        num_windows: Distinct windows.
    """

    launch: Launch
    pipeline_version: int
    context: LaunchContext
    static: NDArray[np.void]
    memory: NDArray[np.void]
    sub_groups: NDArray[np.void]
    num_executed: int
    num_recorded: int
    num_windows: int

    @property
    def num_weighted(self) -> int:
        """Instructions of the traced sub-groups that were not executed but taken by weight."""
        return max(0, int(self.sub_groups["num_instructions"].sum()) - self.num_recorded)

    @property
    def num_launch_instructions(self) -> float:
        """Sub-group instructions of the whole launch."""
        return float(self.sub_groups["num_instructions"] @ self.sub_groups["weight"])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A traced launch.

    Attributes:
        launch: What was traced.
        pipeline_version: Version of the front end's pass pipeline that made the instructions.
        context: What every instruction has in common.
        static: One row a static instruction; `STATIC_DTYPE`.
        memory: Distinct outcomes of memory accesses; `MEMORY_DTYPE`.
        window_start: First token of each window, and the end of the last; shape `(windows + 1,)`.
        token_static: Static instruction of each token; shape `(tokens,)`.
        token_lanes: Active lanes of each token, 1 to 32; shape `(tokens,)`.
        token_memory: Row of `memory`, or -1; shape `(tokens,)`.
        sub_groups: Traced sub-groups; `SUB_GROUP_DTYPE`.
        stream_start: First entry of each sub-group's stream, and the end of the last; shape `(sub_groups + 1,)`.
        stream_window: Windows in execution order, sub-group after sub-group.
        stream_weight: How often the sub-group executes that entry, itself and skipped iterations; float64, as long.
        num_executed: Sub-group instructions that were executed for it, those of work-groups only tried out left out.
    """

    launch: Launch
    pipeline_version: int
    context: LaunchContext
    static: NDArray[np.void]
    memory: NDArray[np.void]
    window_start: NDArray[np.int64]
    token_static: NDArray[np.uint32]
    token_lanes: NDArray[np.uint8]
    token_memory: NDArray[np.int32]
    sub_groups: NDArray[np.void]
    stream_start: NDArray[np.int64]
    stream_window: NDArray[np.uint32]
    stream_weight: NDArray[np.float64]
    num_executed: int

    @property
    def num_windows(self) -> int:
        """Distinct windows."""
        return len(self.window_start) - 1

    @property
    def num_tokens(self) -> int:
        """Instructions of the distinct windows."""
        return len(self.token_static)

    @property
    def window_weight(self) -> NDArray[np.float64]:
        """How often the launch executes each window, shape `(windows,)`."""
        per_entry = np.repeat(self.sub_groups["weight"], np.diff(self.stream_start)) * self.stream_weight
        return np.bincount(self.stream_window, weights=per_entry, minlength=self.num_windows).astype(np.float64)

    @property
    def token_weight(self) -> NDArray[np.float64]:
        """How often the launch executes each token, shape `(tokens,)`; sums to its sub-group instructions."""
        return np.repeat(self.window_weight, np.diff(self.window_start))

    @property
    def summary(self) -> TraceSummary:
        """All but windows and streams."""
        return TraceSummary(
            launch=self.launch,
            pipeline_version=self.pipeline_version,
            context=self.context,
            static=self.static,
            memory=self.memory,
            sub_groups=self.sub_groups,
            num_executed=self.num_executed,
            num_recorded=self.num_recorded,
            num_windows=self.num_windows,
        )

    @property
    def num_weighted(self) -> int:
        """Instructions of the traced sub-groups that were not executed but taken by weight."""
        return self.summary.num_weighted

    @property
    def num_recorded(self) -> int:
        """Instructions of the traced sub-groups that stand in their streams."""
        return int(np.diff(self.window_start)[self.stream_window].sum())

    def save(self, path: str | Path) -> None:
        """Write the trace to an HDF5 file, whole or not at all.

        Raises:
            FormatError: The folder does not exist.
        """
        with open_trace(path) as file:
            for name in _LONG:
                file.append(name, getattr(self, name))
            file.finish(self.summary)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace back.

        Raises:
            FormatError: The file is missing, damaged, of another kind or version.
        """
        with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            arrays = {name: array_of(file, name) for name in _DATASETS}
            try:
                context = LaunchContext(**json.loads(str(file.attrs["context"])))
                pipeline_version = int(str(file.attrs["pipeline_version"]))
                num_executed = int(str(file.attrs["num_executed"]))
            except (KeyError, ValueError, TypeError) as error:
                raise FormatError(f"{path} is damaged: {error}; trace the launch again") from error
            trace = cls(
                launch=read_launch(group_of(file, "launch")),
                pipeline_version=pipeline_version,
                num_executed=num_executed,
                context=context,
                **arrays,
            )
        trace.check(str(path))
        return trace

    def check(self, where: str) -> None:
        """Refuse a trace whose tables point outside each other.

        Args:
            where: What to call the trace in the message.

        Raises:
            FormatError: They do, or a table has the wrong type.
        """
        for name, dtype in (("static", STATIC_DTYPE), ("memory", MEMORY_DTYPE), ("sub_groups", SUB_GROUP_DTYPE)):
            if getattr(self, name).dtype != dtype:
                raise FormatError(f"{where}: table {name!r} has fields {getattr(self, name).dtype}, expected {dtype}")
        limits = (
            ("token_static", self.token_static, len(self.static)),
            ("token_memory", self.token_memory, len(self.memory)),
            ("stream_window", self.stream_window, self.num_windows),
            ("window_start", self.window_start, self.num_tokens + 1),
            ("stream_start", self.stream_start, len(self.stream_window) + 1),
        )
        for name, values, limit in limits:
            if values.size and (int(values.max()) >= limit or int(values.min()) < -1):
                raise FormatError(f"{where} is damaged: {name} points outside its table of {limit} rows")
        if len(self.stream_start) != len(self.sub_groups) + 1 or (
            len(self.token_lanes) != self.num_tokens or len(self.stream_weight) != len(self.stream_window)
        ):
            raise FormatError(f"{where} is damaged: its tables differ in length")


@final
class TraceFile:
    """The HDF5 file of a trace while it is written; see `open_trace`."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._datasets: dict[str, h5py.Dataset] = {}
        self._waiting: defaultdict[str, list[NDArray[Any]]] = defaultdict(list)

    def append(self, name: str, rows: NDArray[Any]) -> None:
        """Add rows to a dataset. They are written in whole chunks, compressed once each."""
        waiting = self._waiting[name]
        waiting.append(rows)
        if sum(map(len, waiting)) >= _CHUNK_ROWS:
            joined = np.concatenate(waiting) if len(waiting) > 1 else rows
            whole = len(joined) - len(joined) % _CHUNK_ROWS
            self._write(name, joined[:whole])
            self._waiting[name] = [joined[whole:]]

    def _write(self, name: str, rows: NDArray[Any]) -> None:
        if name not in self._datasets:
            chunks = min(max(len(rows), 1), _CHUNK_ROWS)
            dataset = self._file.create_dataset(
                name,
                data=rows,
                maxshape=(None, *rows.shape[1:]),
                chunks=(chunks, *rows.shape[1:]),
                **_FILTERS.get(name, _GZIP | {"shuffle": True}),
            )
            dataset.attrs["units"] = _DATASETS[name]
            self._datasets[name] = dataset
        elif len(rows):
            dataset = self._datasets[name]
            dataset.resize(len(dataset) + len(rows), axis=0)
            dataset[-len(rows) :] = rows

    def finish(self, summary: TraceSummary) -> None:
        """Write what is left, and the rest of the trace."""
        file = self._file
        for name in _DATASETS:
            waiting = self._waiting.pop(name, [])
            self._write(name, np.concatenate(waiting) if name in _LONG else getattr(summary, name))
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        for name in ("pipeline_version", "num_executed", "num_recorded", "num_weighted"):
            file.attrs[name] = getattr(summary, name)
        file.attrs["context"] = json.dumps(asdict(summary.context))
        write_launch(file.create_group("launch"), summary.launch)


@contextmanager
def open_trace(path: str | Path) -> Iterator[TraceFile]:
    """Open the file of a trace that is to be written, whole or not at all.

    Raises:
        FormatError: The folder does not exist.
    """
    import h5py

    with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
        yield TraceFile(file)


_DATASETS = {
    "static": "see STATIC_DTYPE",
    "memory": "see MEMORY_DTYPE",
    "window_start": "token",
    "token_static": "row of static",
    "token_lanes": "lane",
    "token_memory": "row of memory",
    "sub_groups": "see SUB_GROUP_DTYPE",
    "stream_start": "entry of stream_window",
    "stream_window": "window",
    "stream_weight": "1",
}
# Those that grow while a launch is traced.
_LONG = (
    "window_start", "token_static", "token_lanes", "token_memory", "stream_start", "stream_window", "stream_weight",
)  # fmt: skip
_CHUNK_ROWS = 1 << 16
# How tables are compressed, all without loss. In tokens gzip finds patterns that are longer than a number, so these are
# not shuffled. HDF5's scale-offset filter keeps as many bits as the largest number has: the window numbers of an
# irregular launch get as small by it as by gzip, in a fraction of the time.
_GZIP: dict[str, Any] = {"compression": "gzip", "compression_opts": 1}
_FILTERS: dict[str, dict[str, Any]] = {
    "token_static": _GZIP | {"scaleoffset": 0},
    "token_lanes": _GZIP,
    "token_memory": _GZIP,
    "stream_window": {"scaleoffset": 0},
}
CONTEXT_FIELDS = tuple(field.name for field in fields(LaunchContext) if field.name != "caveat")
