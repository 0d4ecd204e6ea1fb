"""The SIMT executor: runs work-groups of a launch in native code and hands on the record of what they did."""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.arguments import Argument, ImageArg, LocalArg, SamplerArg, ScalarArg
from perfvec.errors import BarrierDivergenceError, BudgetError, LaunchError, MemoryAccessError, UnsupportedError
from perfvec.program.accesses import CONSTANT, LOCAL, PRIVATE
from perfvec.program.buffers import Contents, aligned_zeros, let_go, resident_bytes
from perfvec.program.compilers import CLANG_VARIABLE
from perfvec.program.driver import CONTEXT, EXITED, MAX_MEMORIES, SUB_GROUP_SIZE, TAG_SHIFT, WAITING, Status
from perfvec.program.frontend import compile_kernel
from perfvec.program.images import coordinates_outside
from perfvec.program.ir import Parameter, parse_kernel, pointer_space, vector_parts
from perfvec.program.machine_code import CompiledKernel, run_groups
from perfvec.program.memories import BoundMemory, Memory
from perfvec.program.native import translate
from perfvec.program.printf import printed, record_buffer
from perfvec.program.texels import HEADER_BYTES, image_contents, make_image

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.launch import Launch
    from perfvec.program.accesses import Access
    from perfvec.program.native import Site

DEFAULT_BUDGET = 400_000_000  # sub-group instructions of the groups that are run
_EVENTS_CAPACITY = 1 << 14
_ADDRESS_ROWS = 1 << 12
_ALIGN = 128
_MAX_COMPILED = 64
_DONE = int(Status.DONE)
_STILL_SOUND = (_DONE, int(Status.RECORD_FULL))
MAX_LOCAL_BYTES = 1 << 18  # of a work-group; no GPU has more
MAX_PRIVATE_BYTES = 1 << 32  # of a work-group
# Memory of the process above which large buffers that a kernel only reads are let go of; looked at after so many steps.
# Linux maps 16 pages where one is read, so even a sample touches most of them.
MOST_RESIDENT = 768 << 20
_LET_GO_AFTER = 16

# Called with the events (segment or mark, mask or number) and the address rows so far.
Consumer: TypeAlias = "Callable[[NDArray[np.uint32], NDArray[np.int64]], None]"


_compiled: OrderedDict[tuple[object, ...], CompiledKernel] = OrderedDict()


def compile_launch(launch: Launch, *, optimise: bool = True) -> CompiledKernel:
    """Compile the kernel of a launch, or take it from the last few that were compiled.

    Raises:
        SourceError, KernelNotFoundError, UnsupportedError: As the front end and the translator say.
    """
    texel_bytes = {i: arg.contents.element.num_bytes for i, arg in enumerate(launch.args) if isinstance(arg, ImageArg)}
    compiler = os.environ.get(CLANG_VARIABLE)
    key = (compiler, launch.source, launch.build_options, launch.kernel_name, optimise, *texel_bytes.items())
    if key in _compiled:
        _compiled.move_to_end(key)
        return _compiled[key]
    program = compile_kernel(launch, optimise=optimise)
    kernel = parse_kernel(program.ir, launch.kernel_name, is_optimised=optimise)
    compiled = CompiledKernel(translate(kernel, texel_bytes=texel_bytes))
    _compiled[key] = compiled
    if len(_compiled) > _MAX_COMPILED:
        _compiled.popitem(last=False)
    return compiled


@final
class Execution:
    """One launch being executed: its memory and the state of the work-group at hand.

    Args:
        compiled: Its kernel.
        launch: The launch.
        budget: Most sub-group instructions to execute.
        contents: Of its buffers by argument position, as far as another execution of it has made them; filled here.
            What the kernel does not read, or does not write, is one buffer for all of these executions.
        is_trial: Only where work-groups go is wanted: what does not decide that is not computed.
    """

    def __init__(
        self,
        compiled: CompiledKernel,
        launch: Launch,
        *,
        budget: int = DEFAULT_BUDGET,
        contents: dict[int, Contents] | None = None,
        is_trial: bool = False,
    ) -> None:
        self.compiled, self.launch = compiled, launch
        self._contents = {} if contents is None else contents
        self._context = np.zeros(len(CONTEXT), np.int64)
        self._context_address = self._context.ctypes.data
        self._run_groups = run_groups()
        self._keep_alive: list[NDArray[np.generic]] = [self._context]
        self.memories: dict[int, BoundMemory] = {}
        self.buffers: dict[int, NDArray[np.generic]] = {}
        self._images: dict[int, tuple[ImageArg, NDArray[np.uint8]]] = {}
        self._only_read: list[NDArray[np.uint8]] = []  # large buffers
        self._num_steps = 0
        self._most_resident = MOST_RESIDENT
        # Limit and base of each memory; then, as often, what an offset is cut to, and nothing.
        self._table = np.zeros((2 * MAX_MEMORIES, 2), np.int64)
        self._table[MAX_MEMORIES:, 0] = -1
        num_segments = len(compiled.native.segments)
        self.segment_count = np.zeros(num_segments, np.int64)
        self.segment_lanes = np.zeros(num_segments, np.int64)
        self._events = np.zeros((_EVENTS_CAPACITY + 1, 2), np.uint32)  # one more: see MARK_GROUP_END
        self._sites = compiled.num_sites.copy()  # `stop_at` writes to it
        self._addresses = np.zeros((_ADDRESS_ROWS + self._sites.max(initial=0), SUB_GROUP_SIZE), np.int64)
        # A lane whose access failed goes on here until its segment ends; vectors are stored by aligned instructions.
        scratch = aligned_zeros(max((site.access.num_bytes for site in compiled.native.sites), default=0) + _ALIGN)
        self._bind_memories()
        self._bind_arguments()
        self._bind_geometry()
        for name, array in (
            ("table", self._table), ("segment_count", self.segment_count), ("segment_lanes", self.segment_lanes),
            ("events", self._events), ("addresses", self._addresses), ("scratch", scratch), ("sites", self._sites),
            ("costs", compiled.costs),
        ):  # fmt: skip
            self._set(name, self._pin(array))
        if compiled.native.printf_sites:
            self._printf = record_buffer(compiled.native.printf_sites)
            self._set("printf", self._pin(self._printf))
        self._set("events_capacity", _EVENTS_CAPACITY)
        self._set("addresses_capacity", len(self._addresses))
        self._set("budget", budget)
        self._set("segments", compiled.trial_segments if is_trial else compiled.segments)
        self._budget = budget

    def _set(self, name: str, value: int) -> None:
        self._context[CONTEXT[name]] = value

    def _get(self, name: str) -> int:
        return int(self._context[CONTEXT[name]])

    def _pin(self, array: NDArray[np.generic]) -> int:
        self._keep_alive.append(array)
        return array.ctypes.data

    # ---- binding ------------------------------------------------------------------------------------------------

    def _bind_memories(self) -> None:
        memories, name = self.compiled.native.memories, self.launch.kernel_name
        local_args = [argument.num_bytes for argument in self.launch.args if isinstance(argument, LocalArg)]
        self.local_mem_bytes = sum(m.num_bytes for m in memories.local) + sum(local_args)
        if self.local_mem_bytes > MAX_LOCAL_BYTES:
            raise LaunchError(
                f"kernel {name!r} needs {self.local_mem_bytes} bytes of local memory for a work-group; no GPU has more "
                f"than {MAX_LOCAL_BYTES}. Use smaller local arrays."
            )
        for memory, offset in zip(memories.private, memories.private_offsets, strict=True):
            self._bind(memory, offset, "private")
        sizes = [*(memory.num_bytes for memory in memories.local), *local_args]
        self._local = aligned_zeros(max(sum(map(self._local_bytes, sizes)), _ALIGN))
        self._local_next = self._pin(self._local)
        self._set("local", self._local_next)
        self._set("local_bytes", self._local.nbytes)
        for memory in memories.local:
            self._bind_local(memory)
        for memory, variable in memories.tables:
            contents = aligned_zeros(memory.num_bytes)
            contents[:] = np.frombuffer(self.compiled.table(memory.symbol, memory.num_bytes), np.uint8)
            self._bind(memory, self._pin(contents), "constant" if variable.address_space == CONSTANT else "global")

    def _bind_local(self, memory: Memory) -> int:
        address = self._bind(memory, self._local_next, "local")
        self._local_next += self._local_bytes(memory.num_bytes)
        return address

    @staticmethod
    def _local_bytes(num_bytes: int) -> int:
        return -(-num_bytes // _ALIGN) * _ALIGN

    def _bind(self, memory: Memory, base: int, space: str) -> int:
        if memory.number >= MAX_MEMORIES:
            raise UnsupportedError(
                f"kernel {self.launch.kernel_name!r} has more than {MAX_MEMORIES} arrays and buffers"
            )
        self._table[memory.number] = memory.num_bytes, base
        self.memories[memory.number] = BoundMemory(
            number=memory.number, name=memory.name, num_bytes=memory.num_bytes, space=space
        )
        return memory.address

    def _bind_arguments(self) -> None:
        native, launch = self.compiled.native, self.launch
        parameters = native.kernel.parameters
        if len(parameters) != len(launch.args):
            wanted = ", ".join(f"{p.name[1:]} ({p.byval or p.type})" for p in parameters)
            raise LaunchError(
                f"kernel {launch.kernel_name!r} takes {len(parameters)} arguments, {len(launch.args)} were given; "
                f"it takes: {wanted or 'none'}"
            )
        block = aligned_zeros(self.compiled.args_bytes)  # vectors are loaded from it
        number = native.memories.first_free
        for position, (parameter, argument) in enumerate(zip(parameters, launch.args, strict=True)):
            value = self._argument_bytes(parameter, argument, number, position)
            number += 1
            offset = self.compiled.arg_offsets[position]
            block[offset : offset + len(value)] = np.frombuffer(value, np.uint8)
        self._args = block
        self._set("args", self._pin(block))

    def _argument_bytes(self, parameter: Parameter, argument: Argument, number: int, position: int) -> bytes:
        where = f"argument {position} ({parameter.name[1:]}) of kernel {self.launch.kernel_name!r}"
        given = argument.kind if isinstance(argument, ImageArg) else "sampler" * isinstance(argument, SamplerArg)
        if given != parameter.opaque:
            forms = {"": "buffer:..., local:... or DTYPE:VALUE", "sampler": "sampler:ADDRESSING:FILTER"}
            form = forms.get(parameter.opaque, f"{parameter.opaque}:FORMAT:SIZES")
            kind = parameter.opaque or f"no image or sampler (LLVM type {parameter.byval or parameter.type})"
            raise LaunchError(f"{where} is {kind}; found {argument}; give {form}")
        if isinstance(argument, SamplerArg):
            return argument.value.to_bytes(8, "little")
        if isinstance(argument, ImageArg):
            return self._bind_image(parameter, argument, number, position).to_bytes(8, "little")
        is_pointer = parameter.type.startswith("ptr") and not parameter.byval
        if isinstance(argument, ScalarArg):
            if is_pointer:
                raise LaunchError(f"{where} is a pointer; found the value {argument}; give buffer:... or local:...")
            return self._value_bytes(where, parameter.byval or parameter.type, argument)
        if not is_pointer:
            raise LaunchError(
                f"{where} is passed by value (LLVM type {parameter.byval or parameter.type}); found {argument}; "
                "give DTYPE:VALUE"
            )
        if isinstance(argument, LocalArg) != (pointer_space(parameter.type) == LOCAL):
            kind = "a buffer: give buffer" if isinstance(argument, LocalArg) else "local memory: give local"
            raise LaunchError(f"{where} is {kind}:DTYPE:COUNT; found {argument}")
        memory = Memory(number=number, name=parameter.name[1:], num_bytes=argument.num_bytes)
        if isinstance(argument, LocalArg):
            return self._bind_local(memory).to_bytes(8, "little")
        if position not in self._contents:
            self._contents[position] = Contents(argument)
        contents = self._contents[position]
        array = contents.shared if parameter.use else contents.buffer()
        if parameter.use == "readonly":
            self._table[MAX_MEMORIES + number, 0] = contents.mask
            if contents.is_large_mapping:
                self._only_read.append(array)
        self.buffers[position] = array.view(argument.element.scalar)
        return self._bind(memory, self._pin(array), "buffer").to_bytes(8, "little")

    def _bind_image(self, parameter: Parameter, argument: ImageArg, number: int, position: int) -> int:
        array = make_image(argument)
        self._images[position] = argument, array
        memory = Memory(number=number, name=parameter.name[1:], num_bytes=array.nbytes)
        return self._bind(memory, self._pin(array), "image") + HEADER_BYTES

    def _value_bytes(self, where: str, type_text: str, argument: ScalarArg) -> bytes:
        value = argument.array()
        expected = self.compiled.native.sizes.bytes_of(type_text)
        if value.nbytes != expected:
            raise LaunchError(
                f"{where} has LLVM type {type_text} of {expected} bytes; found {argument}, {value.nbytes} bytes"
            )
        _, scalar = vector_parts(type_text)
        is_number = scalar in ("half", "float", "double") or re.fullmatch(r"i\d+", scalar)
        if is_number and scalar.startswith("i") == (value.dtype.kind == "f"):
            raise LaunchError(f"{where} has LLVM type {type_text}; found {argument}")
        return value.tobytes()

    def _bind_geometry(self) -> None:
        launch, native = self.launch, self.compiled.native
        dims = len(launch.global_size)
        required = native.kernel.required_local_size
        if required and (*launch.local_size, 1, 1)[:3] != required:
            raise LaunchError(
                f"kernel {launch.kernel_name!r} is declared with reqd_work_group_size{required}; found the local size "
                f"{launch.local_size}; give --local {','.join(map(str, required[:dims]))}"
            )
        local, groups = (*launch.local_size, 1, 1)[:3], (*launch.num_groups, 1, 1)[:3]
        self.group_shape = groups
        num_lanes = math.prod(launch.local_size)
        self.num_sub_groups = -(-num_lanes // SUB_GROUP_SIZE)
        linear = np.arange(num_lanes)
        ids = np.zeros((4, num_lanes), np.int64)
        ids[0], ids[1], ids[2] = linear % local[0], linear // local[0] % local[1], linear // (local[0] * local[1])
        ones = (1, 1, 1, 1)
        self._pcs = np.full(self.num_sub_groups * SUB_GROUP_SIZE, EXITED, np.int32)
        fresh_pcs = self._pcs.copy()
        fresh_pcs[:num_lanes] = 0
        private_bytes = native.memories.private_bytes
        if private_bytes * num_lanes > MAX_PRIVATE_BYTES:
            raise UnsupportedError(
                f"kernel {launch.kernel_name!r} has private arrays of {private_bytes} bytes a work-item, too many for "
                f"a work-group of {num_lanes}; {MAX_PRIVATE_BYTES} bytes are allowed"
            )
        self._regs = aligned_zeros(max(_ALIGN, self.compiled.regs_bytes * self.num_sub_groups))
        tables = {
            "local_ids": ids,
            "global_base": np.zeros(4, np.int64),
            "group_ids": np.zeros(4, np.int64),
            "num_groups": np.array((*launch.num_groups, *ones)[:4], np.int64),
            "global_sizes": np.array((*launch.global_size, *ones)[:4], np.int64),
            "local_sizes": np.array((*launch.local_size, *ones)[:4], np.int64),
            "offsets": np.array((*launch.global_offset, 0, 0, 0)[:4], np.int64),
            "pcs": self._pcs,
            "pcs_fresh": fresh_pcs,
            "regs": self._regs,
            "private": aligned_zeros(max(_ALIGN, private_bytes * self.num_sub_groups * SUB_GROUP_SIZE)),
        }
        for name, array in tables.items():
            self._set(name, self._pin(array))
        self._set("pcs_bytes", self._pcs.nbytes)
        self._set("work_dim", dims)
        self._set("num_lanes", num_lanes)
        self._set("num_sub_groups", self.num_sub_groups)
        self._set("regs_bytes", self.compiled.regs_bytes)
        self._set("private_lane_bytes", private_bytes)

    # ---- running ------------------------------------------------------------------------------------------------

    @property
    def num_work_groups(self) -> int:
        """Work-groups of the launch."""
        return math.prod(self.group_shape)

    def run(self, groups: Iterable[int], consume: Consumer | None = None) -> None:
        """Execute work-groups one after another.

        Args:
            groups: Linear numbers of the work-groups, the first dimension fastest.
            consume: Called with the record whenever it is full and at the end; it must not keep the arrays.

        Raises:
            MemoryAccessError, BarrierDivergenceError, BudgetError: The kernel did what it must not.
        """
        self.begin(groups, is_recorded=consume is not None)
        is_done = False
        while not is_done:
            is_done, events, addresses = self.step()
            if consume is not None:
                consume(events, addresses)

    def run_each(self, groups: Sequence[int]) -> Iterator[None]:
        """Execute work-groups one after another, without a record, as `run` of each does, with less to do between them.

        Yields:
            After each.

        Raises:
            MemoryAccessError, BarrierDivergenceError, BudgetError: The kernel did what it must not.
        """
        self.begin(groups, is_recorded=False)
        for number in range(1, len(groups) + 1):
            self._set("num_run", number)
            while not self._advance(_EVENTS_CAPACITY):
                pass
            yield

    def begin(self, groups: Iterable[int], *, is_recorded: bool = True) -> None:
        """Prepare to execute work-groups, as `run` does, by `step`; what is not recorded runs quicker."""
        self._is_recorded = is_recorded
        self._set("keeps_addresses", -int(is_recorded))
        self._chosen = np.fromiter(groups, np.int64)
        self._set("groups", self._chosen.ctypes.data)
        self._set("num_run", len(self._chosen))
        self._set("position", 0)
        self._set("is_entered", 0)

    def step(self, most_events: int = _EVENTS_CAPACITY) -> tuple[bool, NDArray[np.uint32], NDArray[np.int64]]:
        """Execute until the record is full, a segment of `stop_at` is next, or all work-groups have ended.

        Args:
            most_events: Segments to execute at most.

        Returns:
            Whether all have ended, and the record of this step, which holds until the next.

        Raises:
            MemoryAccessError, BarrierDivergenceError, BudgetError: The kernel did what it must not.
        """
        is_done = self._advance(most_events)
        return is_done, *self.record()

    def _advance(self, most_events: int) -> bool:
        """As `step`, without the record."""
        self._num_steps += 1
        if self._only_read and self._num_steps % _LET_GO_AFTER == 0 and resident_bytes() > self._most_resident:
            for buffer in self._only_read:
                let_go(buffer)
            # What else the process holds stays: without this they would be let go of again at once, and again.
            self._most_resident = max(MOST_RESIDENT, resident_bytes() + MOST_RESIDENT // 4)
        self._set("events_count", 0)
        self._set("addresses_count", 0)
        self._set("events_capacity", max(2, min(most_events, _EVENTS_CAPACITY)))
        status = self._run_groups(self._context_address)
        if status not in _STILL_SOUND:
            raise self._error(Status(status), int(self._chosen[self._get("position")]))
        return status == _DONE

    def record(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Events and address rows of the last step; none if it was not recorded."""
        if not self._is_recorded:
            return self._events[:0], self._addresses[:0]
        return self._events[: self._get("events_count")], self._addresses[: self._get("addresses_count")]

    @property
    def num_executed(self) -> int:
        """Sub-group instructions that have been executed."""
        return self._budget - self._get("budget")

    @property
    def place(self) -> tuple[int, int]:
        """Position of the work-group that runs, and the number of its sub-group that runs."""
        return self._get("position"), self._get("sub_group")

    def program_counters(self) -> NDArray[np.int32]:
        """The segment that comes next for each lane of the sub-group that runs, or a value past all; a view."""
        start = self._get("sub_group") * SUB_GROUP_SIZE
        return self._pcs[start : start + SUB_GROUP_SIZE]

    def stop_at(self, segments: frozenset[int]) -> None:
        """Let `step` return before any of these segments."""
        self._sites[:] = self.compiled.num_sites
        self._sites[list(segments)] = _ADDRESS_ROWS << 8  # more address rows than there will ever be

    def kept(self, name: str, bits: int) -> NDArray[np.generic]:
        """A value that lives longer than a segment, of each lane of the sub-group that runs; a view."""
        start = self._get("sub_group") * self.compiled.regs_bytes + self.compiled.slot_offsets[name]
        return self._regs[start : start + SUB_GROUP_SIZE * bits // 8].view(f"u{bits // 8}")

    def argument(self, name: str, bits: int) -> int:
        """A scalar argument or pointer, as an unsigned number."""
        number = [p.name for p in self.compiled.native.kernel.parameters].index(name)
        offset = self.compiled.arg_offsets[number]
        return int.from_bytes(self._args[offset : offset + bits // 8].tobytes(), "little")

    def _error(self, status: Status, group: int) -> Exception:
        x, y, _ = self.group_shape
        place = (group % x, group // x % y, group // (x * y))[: len(self.launch.global_size)]
        where = f"kernel {self.launch.kernel_name!r}, work-group {place}"
        if status == Status.MEMORY_ERROR:
            return self._memory_error(where)
        if status == Status.OVER_BUDGET:
            return BudgetError(
                f"{where}: the traced work-groups ran past the budget of {self._budget:,} sub-group instructions. "
                "If the kernel ends, raise --budget; if not, look at its loops and their bounds."
            )
        return self._barrier_error(where)

    def _fault(self) -> tuple[Site, int, int]:
        """The first access of the last segment that touched what it must not, its address and its lane."""
        segment, mask = self._events[self._get("events_count") - 1].tolist()
        sites = [site for site in self.compiled.native.sites if site.segment == segment]
        rows = self._addresses[max(0, self._get("addresses_count") - len(sites)) :]
        for lane in range(SUB_GROUP_SIZE):
            for site, address in zip(sites, rows[:, lane].tolist(), strict=False):
                if mask >> lane & 1 and not self._is_sound(site.access, site.memories, address):
                    return site, address, lane
        raise AssertionError("a segment found a fault that its record has not")

    def _is_sound(self, access: Access, memories: range, address: int) -> bool:
        """Whether an access may touch an address; what native code asks, too."""
        number, offset = address >> TAG_SHIFT, address & ((1 << TAG_SHIFT) - 1)
        return number in memories and offset + access.num_bytes <= self._table[number][0] and not address % access.align

    def _memory_error(self, where: str) -> MemoryAccessError:
        site, address, lane = self._fault()
        address, lane, num_bytes = address & ((1 << 64) - 1), lane + self._get("lane_base"), site.access.num_bytes
        number, offset = address >> TAG_SHIFT, address & ((1 << TAG_SHIFT) - 1)
        if offset >= 1 << (TAG_SHIFT - 1) and number + 1 in self.memories:
            number, offset = number + 1, offset - (1 << TAG_SHIFT)  # a negative offset borrows from the number
        is_far = len(site.memories) == 1 and number not in site.memories
        memory = None if is_far else self.memories.get(number)
        verb = "writes" if site.access.is_write else "reads"
        line = f"line {site.instruction.line} of {self.launch.source_name}"
        what = f"{where}, work-item {lane} of the group, {line}: {verb} {num_bytes} bytes"
        if memory is None:
            return MemoryAccessError(
                f"{what} at an address in no buffer ({address:#x}); is a pointer null or not set?",
                line=site.instruction.line,
            )

        def error(message: str) -> MemoryAccessError:
            return MemoryAccessError(
                message,
                memory=memory.name,
                space=memory.space,
                offset=offset,
                num_bytes=num_bytes,
                line=site.instruction.line,
            )

        if (memory.space == "private") != (site.access.space == PRIVATE):
            return error(f"{what} of {memory.space} {memory.name!r} through a pointer to another address space")
        if memory.space == "image":
            base = self._table[number][1]
            image = next(image for image, array in self._images.values() if array.ctypes.data == base)
            texel = (offset - HEADER_BYTES) // num_bytes
            return error(
                f"{what} at coordinates {coordinates_outside(texel, site.instruction.callee)} of image "
                f"{memory.name!r}, which has {'x'.join(map(str, image.size))} texels. Guard the access by the bounds, "
                "or read through a sampler that clamps."
            )
        place = f"{what} at byte {offset} (index {offset // max(num_bytes, 1)}) of {memory.space} {memory.name!r}"
        if 0 <= offset <= memory.num_bytes - num_bytes:
            return error(
                f"{place}, which is not a multiple of {site.access.align}, the alignment of what is accessed; "
                "OpenCL leaves this undefined. Align the index, or use vloadn, vstoren or single elements."
            )
        return error(
            f"{place}, which has {memory.num_bytes} bytes. Give a larger buffer, or guard the access by the bounds."
        )

    def _barrier_error(self, where: str) -> BarrierDivergenceError:
        pcs = self._pcs[: self._get("num_lanes")]
        waiting = pcs[(pcs >= WAITING) & (pcs < EXITED)]
        stop = int(np.bincount(waiting - WAITING).argmax())
        segments = self.compiled.native.segments
        before = next(s for s in segments if s.is_barrier and stop in s.successors)
        line = before.body[-1].line
        arrived = int((waiting - WAITING == stop).sum())
        return BarrierDivergenceError(
            f"{where}: {arrived} of {len(pcs)} work-items reached the barrier at line {line} of "
            f"{self.launch.source_name}; {int((pcs == EXITED).sum())} had ended. All work-items of a group must reach "
            "it; look for a barrier inside a divergent branch, or an early return before it."
        )

    def printed(self) -> str:
        """What the work-items have printed so far, in the order of execution; see `perfvec.program.printf.printed`."""
        sites = self.compiled.native.printf_sites
        if not sites:
            return ""
        record = self._printf[: self._get("printf_used")]
        return printed(record, sites, num_cut=self._get("printf_cut"), read_text=self._literal)

    def _literal(self, address: int) -> bytes | None:
        """The text at an address of constant memory, up to its first zero; None if there is none."""
        memory = self.memories.get(address >> TAG_SHIFT)
        offset = address & ((1 << TAG_SHIFT) - 1)
        if memory is None or memory.space != "constant" or offset >= memory.num_bytes:
            return None
        text = ctypes.string_at(int(self._table[memory.number][1]) + offset, memory.num_bytes - offset)
        return text.split(b"\0")[0]

    def results(self) -> dict[int, NDArray[np.generic]]:
        """Contents of the buffers and images now, by argument position."""
        return self.buffers | {at: image_contents(array, image) for at, (image, array) in self._images.items()}
