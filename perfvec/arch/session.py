"""A measuring session: one device, awake, with its launch overhead known; and the time of one launch on it."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import cast, final

import numpy as np
import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from perfvec.arch.measured import MAX_REPEATS_STORED, MeasuredTime
from perfvec.arch.median import median, median_is_known, relative_spread
from perfvec.arch.opencl import LiveDevice, device_key, open_device
from perfvec.arch.replay import (
    DeviceBuffer,
    DeviceMemory,
    HostBuffer,
    bind,
    build_program,
    copy_back,
    copy_out,
    enqueue,
    event_time_s,
    explained,
    fill,
    is_read_only,
    make_kernel,
    upload,
)
from perfvec.errors import ConfigError, DeviceMemoryError, OpenCLError
from perfvec.launch import Launch
from perfvec.units import format_bytes

_TOOLS = """
__kernel void perfvec_nothing(__global int *unused) {}

__kernel void perfvec_filler(__global int *out, int rounds) {
  float x = get_global_id(0);
  for (int i = 0; i < rounds; ++i) x = mad(x, 0.999f, 0.5f);
  if (x == -1.0f) out[0] = 1;
}

__kernel void perfvec_differs(__global const uchar *a, __global const uchar *b, ulong num_bytes,
                              ulong next_item, ulong next_word, __global int *flags, int index) {
  ulong num_words = num_bytes / 4;
  ulong first = get_global_id(0) * next_item;
  ulong end = next_word == 1 ? min(first + next_item, num_words) : num_words;
  for (ulong i = first; i < end; i += next_word)
    if (((__global const uint *)a)[i] != ((__global const uint *)b)[i]) {
      flags[index] = 1;
      return;
    }
  if (get_global_id(0) == 0)
    for (ulong i = 4 * num_words; i < num_bytes; ++i)
      if (a[i] != b[i]) flags[index] = 1;
}
"""
_MAX_PROGRAMS = 256
# The program then says which of its parameters point to what it only reads; its code is the same.
_TELL_QUALIFIERS = "-cl-kernel-arg-info"
_MAX_FILLER_ROUNDS = 1 << 24
_OVERHEAD_REPEATS = 51
# The filler of a device at full clocks repeats to a few per cent.
_AWAKE_RATIO = 1.1
# Buffers and their untouched copies must both fit.
_USABLE_MEMORY = 0.9
# Parts of a buffer that are compared by themselves on a CPU, a core.
_PARTS_PER_UNIT = 8
# PoCL compiles a kernel anew for each local size, and once more where a dimension has this many work-items.
_POCL_LARGE_GRID = 65_535


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """When a time counts as measured.

    Attributes:
        precision: Half width of the median's confidence interval ÷ median at which repeating ends.
        confidence: Probability of that interval.
        min_repeats: Repeats before which no budget ends it.
        long_s: Of a run over this two repeats are enough.
        max_repeats: Repeats at which it ends in any case.
        watchdog_s: A run over this is not repeated.
        warm_up_s: How long a new session keeps the device busy before the first launch.
        filler_s: Length of the filler kernel that runs before every launch.
        wake_s: How long the filler is repeated at most until it runs at its usual speed.
    """

    precision: float = 0.02
    confidence: float = 0.95
    min_repeats: int = 1
    long_s: float = 0.02
    max_repeats: int = 200
    watchdog_s: float = 2.0
    warm_up_s: float = 0.3
    filler_s: float = 1e-3
    wake_s: float = 0.02

    def __post_init__(self) -> None:
        if not 0 < self.precision < 1 or not 0 < self.confidence < 1:
            raise ConfigError(
                f"precision={self.precision}, confidence={self.confidence}; allowed are fractions between 0 and 1"
            )
        if not 1 <= self.min_repeats <= self.max_repeats <= MAX_REPEATS_STORED:
            raise ConfigError(
                f"min_repeats={self.min_repeats}, max_repeats={self.max_repeats}; allowed are 1 to "
                f"{MAX_REPEATS_STORED}, the least first"
            )
        for name in ("long_s", "watchdog_s", "warm_up_s", "filler_s", "wake_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name}={getattr(self, name)}; allowed are finite times over 0")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLaunch:
    """A launch's contents on the device.

    Attributes:
        buffers: By the argument's position.
        pristine: Untouched copies of those that the kernel may change.
        num_bytes: Device memory of both.
    """

    buffers: dict[int, DeviceMemory]
    pristine: dict[int, DeviceBuffer]
    num_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownKernel:
    """A kernel, the positions of arguments that it only reads, and for which NDRanges its code is compiled."""

    kernel: cl.Kernel
    read_only: frozenset[int]
    compiled: set[tuple[object, ...]]


@final
class ProgramCache:
    """Compiled programs of a context by source and options; threads that want the same one wait for one build."""

    def __init__(self, context: cl.Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._futures: OrderedDict[tuple[str | bytes, tuple[str, ...]], Future[cl.Program]] = OrderedDict()

    def get(self, launch: Launch) -> cl.Program:
        """The program of a launch.

        Raises:
            SourceError: It does not compile, now or when it was first asked for.
        """
        key = (launch.source, launch.build_options)
        with self._lock:
            future = self._futures.get(key)
            is_mine = future is None
            if future is None:
                future = self._futures[key] = Future()
            self._futures.move_to_end(key)
            if len(self._futures) > _MAX_PROGRAMS:
                self._futures.popitem(last=False)
        if is_mine:
            try:
                future.set_result(
                    build_program(
                        self._context,
                        launch.source,
                        (*launch.build_options, _TELL_QUALIFIERS),
                        source_name=launch.source_name,
                    )
                )
            except BaseException as error:  # whoever waits for this build must wake up, whatever happened
                future.set_exception(error)
        return future.result()


@final
class Session:
    """A device with a context, kept awake between launches.

    Attributes:
        device: The live device.
        key: Its name in tables.
        launch_overhead_s: Median time of an empty kernel; 0 before the session is warm.
        programs: Compiled programs.
        busy_s: Time in which the device ran launches so far.
    """

    def __init__(
        self,
        device: LiveDevice,
        protocol: Protocol | None = None,
        *,
        is_warm: bool = True,
        on_run: Callable[[bool], None] = lambda _is_running: None,
    ) -> None:
        """Open the device, warm it up and measure its launch overhead.

        Args:
            device: What to open.
            protocol: When a time counts as measured.
            is_warm: Warm it up now; else `warm_up` must be called before anything is measured.
            on_run: Told before and after every run of a kernel.

        Raises:
            OpenCLError: The device is a simulator, is gone, or failed.
        """
        if device.is_simulator:
            raise OpenCLError(
                f"{device.name} is a simulator, whose times mean nothing; choose a real device or PoCL by its number"
            )
        self.device = device
        self.key = device_key(device)
        self.protocol = protocol or Protocol()
        self.busy_s = 0.0
        self.launch_overhead_s = 0.0
        self._on_run = on_run
        self._date = datetime.now(UTC).date().isoformat()
        handle = open_device(device)
        with explained(f"opening {device.name}"):
            self._context = cl.Context([handle])
            self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            self._pool = MemoryPool(ImmediateAllocator(self._queue))
            self._staged: OrderedDict[str, tuple[int, DeviceBuffer]] = OrderedDict()
            self._kernels: OrderedDict[tuple[object, ...], _KnownKernel] = OrderedDict()
            self._kernels_lock = threading.Lock()
            self.programs = ProgramCache(self._context)
            tools = build_program(self._context, _TOOLS, source_name="perfvec's measuring kernels")
            self._scratch = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, 64)
            self._nothing = cl.Kernel(tools, "perfvec_nothing")
            self._nothing.set_arg(0, self._scratch)
            self._differs = cl.Kernel(tools, "perfvec_differs")
            self._filler = cl.Kernel(tools, "perfvec_filler")
        self._filler_best_s = float("inf")
        if is_warm:
            self.warm_up()

    def warm_up(self) -> None:
        """Keep the device busy for a while, and measure its launch overhead; nothing else may run on it.

        Raises:
            OpenCLError: The device failed.
        """
        with explained(f"warming up {self.device.name}"):
            self._filler_best_s = self._size_filler()
            overheads = [self._run_tool(self._nothing, 1) for _ in range(_OVERHEAD_REPEATS)]
            self.launch_overhead_s = float(np.median(overheads))

    def is_alive(self) -> bool:
        """Whether the context still runs kernels; after a bad memory access some drivers refuse all that follow."""
        try:
            self._run_tool(self._nothing, 1)
        except cl.Error:
            return False
        return True

    def check_memory(self, launch: Launch) -> None:
        """Refuse a launch that is too large for the device.

        Raises:
            DeviceMemoryError: Its buffers and their copies do not fit.
        """
        if 2 * launch.buffer_bytes > _USABLE_MEMORY * self.device.memory_bytes:
            raise DeviceMemoryError(
                f"{self._doing(launch)}: its buffers of {format_bytes(launch.buffer_bytes)} and their untouched copies "
                f"do not fit into {format_bytes(self.device.memory_bytes)}; measure a smaller launch"
            )

    def compile(self, launch: Launch) -> None:
        """Compile a launch's program, and let the driver do what it does for its kernel.

        Raises:
            SourceError: The source does not compile.
            KernelNotFoundError: It has no such kernel.
            OpenCLError: The device failed.
        """
        with explained(self._doing(launch)):
            self._kernel(launch)

    def _kernel(self, launch: Launch) -> _KnownKernel:
        """The launch's kernel; kept, since pyopencl looks into a cache on disk for every kernel that it makes."""
        key = (launch.source, launch.build_options, launch.kernel_name)
        program = self.programs.get(launch)  # threads build programs beside each other
        with self._kernels_lock:
            if key not in self._kernels:
                kernel = make_kernel(program, launch)
                read_only = frozenset(place for place in range(kernel.num_args) if is_read_only(kernel, place))
                self._kernels[key] = _KnownKernel(kernel=kernel, read_only=read_only, compiled=set())
                if len(self._kernels) > _MAX_PROGRAMS:
                    self._kernels.popitem(last=False)
            self._kernels.move_to_end(key)
            return self._kernels[key]

    def stage(self, contents: Mapping[int, HostBuffer], *, most_bytes: int) -> None:
        """Bring blocks of contents to the device ahead of time; those that wait longest make room for them.

        Args:
            contents: Of a launch.
            most_bytes: What all blocks may take there.

        Raises:
            DeviceMemoryError: The device is full.
            OpenCLError: The device failed.
        """
        with explained(f"bringing data to {self.device.name}"):
            for held in contents.values():
                num_bytes = held.block.nbytes
                if held.key and self._staged.get(held.key, (0, None))[0] < num_bytes <= most_bytes:
                    self._staged.pop(held.key, None)  # launches that are held may still have it
                    buffer = self._allocate(num_bytes)
                    self._staged[held.key] = (num_bytes, buffer)
                    cl.enqueue_copy(self._queue, buffer, held.block)
            while sum(size for size, _ in self._staged.values()) > most_bytes:
                self._staged.popitem(last=False)

    def free_unused(self, most_bytes: int) -> None:
        """Give memory back to the device that nothing uses, where it is more than so much."""
        if self._pool.managed_bytes - self._pool.active_bytes > most_bytes:
            self._pool.free_held()

    def hold(self, launch: Launch, contents: Mapping[int, HostBuffer]) -> HeldLaunch:
        """Bring a launch's contents to the device, with untouched copies of what its kernel may change. What it only
        reads, and is there already (`stage`), is not copied. The memory is free again when nobody has the result.

        Raises:
            SourceError: The source does not compile.
            KernelNotFoundError: It has no such kernel.
            DeviceMemoryError: The device is full.
            OpenCLError: The device failed.
        """
        with explained(self._doing(launch)):
            read_only = self._kernel(launch).read_only
            buffers: dict[int, DeviceMemory] = {}
            pristine: dict[int, DeviceBuffer] = {}
            num_bytes = 0
            for position, held in contents.items():
                whole = self._whole(held, buffers.values()) if position in read_only else None
                buffers[position] = self._filled(held) if whole is None else whole
                num_bytes += held.num_bytes if whole is None else 0
            for position, held in contents.items():
                if position not in read_only:
                    pristine[position] = self._allocate(held.num_bytes)
                    copy_out(self._queue, pristine[position], buffers[position], held)
                    num_bytes += held.num_bytes
            return HeldLaunch(buffers=buffers, pristine=pristine, num_bytes=num_bytes)

    def rehearse(self, launch: Launch, contents: Mapping[int, HostBuffer], held: HeldLaunch) -> None:
        """Run a few work-groups, so that nothing is left to be compiled when the launch is timed.

        Drivers of CPUs compile a kernel when it first runs with a local size. What has been compiled is not run again.

        Args:
            launch: The launch.
            contents: Of its buffers.
            held: The same on the device; they are as before when this ends.

        Raises:
            PerfVecError: As `measure`.
        """
        known = self._kernel(launch)
        is_large = max(launch.global_size) >= _POCL_LARGE_GRID
        key = (launch.local_size, any(launch.global_offset), is_large)
        if key in known.compiled:
            return
        with explained(self._doing(launch)):
            bind(known.kernel, launch, held.buffers)
            few = list(launch.local_size)
            if is_large:
                longest = launch.global_size.index(max(launch.global_size))
                few[longest] *= math.ceil(_POCL_LARGE_GRID / few[longest])
            self._run(known.kernel, replace(launch, global_size=tuple(few)))
            self._restore(held.buffers, held.pristine, contents)
            self._queue.finish()
        known.compiled.add(key)

    def measure(
        self,
        launch: Launch,
        contents: Mapping[int, HostBuffer],
        *,
        budget_s: float,
        is_awake: bool = False,
        held: HeldLaunch | None = None,
    ) -> MeasuredTime:
        """Time a launch.

        Once for warm-up, and to see which buffers the kernel changes; then again and again, each time with those
        buffers as they were at first, until the median is known or `budget_s` is spent. If the first run takes longer
        than the watchdog allows, it is the measurement; if it takes longer than `budget_s` and more than one repeat is
        wanted, it is one of them.

        Args:
            launch: What to time.
            contents: Of its buffers, from `perfvec.arch.replay.host_buffers`.
            budget_s: Wall time that the repeats may take.
            is_awake: The device was kept busy until now.
            held: The contents on the device, where they were brought there ahead of time.

        Raises:
            SourceError: The source does not compile.
            KernelNotFoundError: It has no such kernel.
            LaunchError: The arguments do not fit the kernel.
            DeviceMemoryError: The launch needs more memory than the device has.
            OpenCLError: The device refused the launch, or failed.
            FormatError: The device's timer gave no time over 0.
        """
        self.check_memory(launch)
        with explained(self._doing(launch)):
            kernel, buffers, pristine = self._bound(launch, contents, held)
            if not is_awake:
                self.wake()
            forget = partial(self._forget_unchanged, buffers, pristine, contents)
            times_s = [self._run(kernel, launch, forget if pristine else None)]
            if times_s[0] <= self.protocol.watchdog_s:
                restore = partial(self._restore, buffers, pristine, contents) if pristine else None
                kept = times_s if self.protocol.min_repeats > 1 and times_s[0] > budget_s else []
                times_s = self._repeat(kernel, launch, restore, budget_s, kept)
        return MeasuredTime(
            digest=launch.digest,
            device=self.key,
            kernel_time_s=median(times_s),
            spread=relative_spread(times_s),
            num_repeats=len(times_s),
            min_s=min(times_s),
            launch_overhead_s=self.launch_overhead_s,
            driver=self.device.driver,
            date=self._date,
        )

    def _doing(self, launch: Launch) -> str:
        return f"measuring kernel {launch.kernel_name!r} of {launch.source_name} on {self.device.name}"

    def _run(self, kernel: cl.Kernel, launch: Launch, then: Callable[[], None] | None = None) -> float:
        """Time of one run, s; what `then` puts into the queue behind it has ended, too."""
        self._on_run(True)
        try:
            event = enqueue(self._queue, kernel, launch)
            if then is not None:
                then()
                self._queue.finish()
            time_s = event_time_s(event)
        finally:
            self._on_run(False)
        self.busy_s += time_s
        return time_s

    def _allocate(self, num_bytes: int) -> DeviceBuffer:
        return cast("DeviceBuffer", self._pool.allocate(num_bytes))  # it goes back to the pool when it is released

    def _filled(self, held: HostBuffer) -> DeviceMemory:
        """A device buffer or image with the contents."""
        if held.image is not None:
            return upload(self._queue, held)
        buffer = self._allocate(held.num_bytes)
        num_bytes, staged = self._staged.get(held.key, (0, None))
        fill(self._queue, buffer, held, staged if num_bytes >= held.block.nbytes else None)
        return buffer

    def _whole(self, held: HostBuffer, taken: Collection[DeviceMemory]) -> DeviceBuffer | None:
        """A block that was brought here ahead of time and holds all of the contents, if none of the others is it."""
        num_bytes, staged = self._staged.get(held.key, (0, None))
        is_whole = num_bytes >= held.num_bytes and held.block.nbytes >= held.num_bytes and held.image is None
        return staged if is_whole and not any(staged is buffer for buffer in taken) else None

    def _bound(
        self, launch: Launch, contents: Mapping[int, HostBuffer], held: HeldLaunch | None
    ) -> tuple[cl.Kernel, dict[int, DeviceMemory], dict[int, DeviceBuffer]]:
        """A kernel with its arguments; device buffers and images with the contents, and untouched copies of those that
        the kernel may write.
        """
        kernel = self._kernel(launch).kernel
        held = held or self.hold(launch, contents)
        bind(kernel, launch, held.buffers)
        return kernel, held.buffers, held.pristine

    def _forget_unchanged(
        self, buffers: Mapping[int, DeviceMemory], pristine: dict[int, DeviceBuffer], contents: Mapping[int, HostBuffer]
    ) -> None:
        """Drop the copies of buffers that the kernel left as they were: they need not be put back."""
        flags = np.zeros(max(pristine) + 1, np.int32)
        flag_buffer = self._allocate(flags.nbytes)
        cl.enqueue_fill_buffer(self._queue, flag_buffer, flags[:1], 0, flags.nbytes)  # pyright: ignore[reportArgumentType]
        texels: list[DeviceBuffer] = []
        for position in pristine:
            buffer = buffers[position]
            num_bytes = contents[position].num_bytes
            if isinstance(buffer, cl.Image):
                texels.append(self._allocate(num_bytes))
                copy_out(self._queue, texels[-1], buffer, contents[position])
                buffer = texels[-1]
            size, local, steps = self._comparing(num_bytes)
            values = (buffer, pristine[position], num_bytes, *steps, flag_buffer, np.int32(position))
            for place, value in enumerate(values):
                self._differs.set_arg(place, np.uint64(value) if isinstance(value, int) else value)
            cl.enqueue_nd_range_kernel(self._queue, self._differs, (size,), local)
        cl.enqueue_copy(self._queue, flags, flag_buffer)
        for buffer in (flag_buffer, *texels):
            buffer.release()
        for position in [position for position in pristine if not flags[position]]:
            pristine.pop(position).release()

    def _comparing(self, num_bytes: int) -> tuple[int, tuple[int] | None, tuple[int, int]]:
        """Global and local size to compare buffers with; words between work-items, and from one to the next of an item.

        Neighbours read neighbours on a GPU. On a CPU, which runs one work-item after the other, each reads a part.
        """
        if self.device.type != "cpu":
            return self._busy_size, None, (1, self._busy_size)
        size = _PARTS_PER_UNIT * self.device.compute_units
        return size, (1,), (max(1, math.ceil(num_bytes / 4 / size)), 1)

    def _restore(
        self,
        buffers: Mapping[int, DeviceMemory],
        changed: Mapping[int, DeviceBuffer],
        contents: Mapping[int, HostBuffer],
    ) -> None:
        for position, copy in changed.items():
            copy_back(self._queue, buffers[position], copy, contents[position])

    def _repeat(
        self,
        kernel: cl.Kernel,
        launch: Launch,
        restore: Callable[[], None] | None,
        budget_s: float,
        kept: Sequence[float] = (),
    ) -> list[float]:
        rule = self.protocol
        deadline = time.perf_counter() + budget_s
        times_s = list(kept)
        is_restored = restore is None
        while len(times_s) < rule.max_repeats:
            if restore is not None and not is_restored:
                restore()
                # A copy queued just before the kernel would hide a part of the launch overhead.
                self._queue.finish()
            # One queued behind the kernel saves waiting twice; where no other run is likely, it would be for nothing.
            expected_s = times_s[-1] if times_s else 0.0
            is_last = self._is_enough(times_s, 1) and time.perf_counter() + expected_s > deadline
            times_s.append(self._run(kernel, launch, None if is_last else restore))
            is_restored = restore is None or not is_last
            if times_s[-1] > rule.watchdog_s:
                break
            if self._is_enough(times_s) and time.perf_counter() > deadline:
                break
            if median_is_known(times_s, precision=rule.precision, confidence=rule.confidence):
                break
        return times_s

    def _is_enough(self, times_s: Sequence[float], more: int = 0) -> bool:
        """Whether so many times, and some more, may be all."""
        rule = self.protocol
        is_long = len(times_s) > 0 and times_s[0] > rule.long_s
        return len(times_s) + more >= (min(rule.min_repeats, 2) if is_long else rule.min_repeats)

    # ---- keeping the device awake -------------------------------------------------------------------------------

    @property
    def _busy_size(self) -> int:
        return 1024 * self.device.compute_units

    def _run_tool(self, kernel: cl.Kernel, global_size: int) -> float:
        return event_time_s(cl.enqueue_nd_range_kernel(self._queue, kernel, (global_size,), None))

    def _size_filler(self) -> float:
        """Size the filler, keep the device busy for a while; the filler's best time."""
        rounds = 64
        self._filler.set_arg(0, self._scratch)
        self._filler.set_arg(1, np.int32(rounds))
        deadline = time.perf_counter() + self.protocol.warm_up_s
        best_s = self._run_tool(self._filler, self._busy_size)
        while time.perf_counter() < deadline:
            best_s = min(best_s, self._run_tool(self._filler, self._busy_size))
            if best_s < self.protocol.filler_s and rounds < _MAX_FILLER_ROUNDS:
                rounds *= 2
                self._filler.set_arg(1, np.int32(rounds))
                best_s = float("inf")
        return best_s if best_s < float("inf") else self._run_tool(self._filler, self._busy_size)

    def wake(self) -> None:
        """Run the filler until it takes its usual time: the device has left its idle clocks."""
        deadline = time.perf_counter() + self.protocol.wake_s
        while True:
            filler_s = self._run_tool(self._filler, self._busy_size)
            self._filler_best_s = min(self._filler_best_s, filler_s)
            if filler_s <= _AWAKE_RATIO * self._filler_best_s or time.perf_counter() > deadline:
                return
