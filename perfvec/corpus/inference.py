"""Arguments for kernels of unknown origin: by static analysis, then by check runs that repair what it missed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from perfvec.arguments import BufferArg, ImageArg, LocalArg
from perfvec.corpus.analysis.extents import Extents
from perfvec.corpus.analysis.passing import InferredArgument, Passing, Repairs, data_limits
from perfvec.corpus.analysis.polynomial import Polynomial
from perfvec.corpus.analysis.ranges import Ranges, ScalarKey, Setting
from perfvec.corpus.analysis.scalars import ScalarReason, Scalars
from perfvec.corpus.analysis.symbolic import SymbolicKernel
from perfvec.corpus.analysis.wording import in_words
from perfvec.errors import BarrierDivergenceError, BudgetError, LaunchError, MemoryAccessError, PerfVecError
from perfvec.launch import MAX_LOCAL_SIZE, Launch
from perfvec.program.canonical import canonical_kernel
from perfvec.program.executor import MAX_LOCAL_BYTES, Execution, compile_launch
from perfvec.program.frontend import compile_source
from perfvec.program.sampling import sample_groups
from perfvec.program.texels import HELD_BYTES

DEFAULT_GLOBAL_SIZES = ((65536,), (256, 256), (32, 32, 32))  # by dimensions
_LOCAL_SIZES = (
    ((256,), (128,), (64,), (32,), (16,), (8,), (4,), (1,)),
    ((16, 16), (8, 8), (4, 4), (32, 1), (2, 2), (1, 1)),
    ((8, 8, 4), (4, 4, 4), (4, 4, 1), (2, 2, 2), (1, 1, 1)),
)
MAX_BYTES = 1 << 30
_MOST_LOCAL_BYTES = 48 << 10  # that every GPU has
_LEAST_DEFAULT = 64  # work-items along the longest dimension
_ROUNDS = 12  # check runs of a launch
_CHECK_GROUPS = 8
_CHECK_BUDGET = 4_000_000  # sub-group instructions of a check run
_LONG_BUDGET = 40_000_000  # of one work-group alone
_SMALL_GROUPS = 2  # work-groups along each dimension of the first check
_FEWER_TRIPS = 0.25
_SIZE_LIMITS = (4096, 512, 64)  # of scalars that bound ids, one after the other
_FARTHEST_GROWTH = 64  # times its size that a buffer grows in one repair


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InferredLaunch:
    """A launch with the reasons for its arguments.

    Attributes:
        launch: The launch; its check run ended without an error.
        arguments: One an argument, in order.
        demands: What the kernel demands of sizes, in words.
        repairs: What check runs changed, in words.
    """

    launch: Launch
    arguments: tuple[InferredArgument, ...]
    demands: tuple[str, ...]
    repairs: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for besides the kernel.

    Attributes:
        local_size: The local size; chosen where it is empty.
        scalars: Values of scalar arguments by name, as far as they are given.
        build_options: Passed to the compiler.
        source_name: What to call the source in messages.
        max_bytes: Most bytes of all buffers together.
        is_checked: Whether to run work-groups and repair what the analysis missed.
    """

    local_size: tuple[int, ...] = ()
    scalars: Mapping[str, float] | None = None
    build_options: tuple[str, ...] = ()
    source_name: str = "kernel.cl"
    max_bytes: int = MAX_BYTES
    is_checked: bool = True


def infer_launches(
    source: str | bytes,
    kernel_name: str,
    *,
    global_size: int | tuple[int, ...] | Sequence[tuple[int, ...]] | None = None,
    local_size: tuple[int, ...] = (),
    scalars: Mapping[str, float] | None = None,
    build_options: tuple[str, ...] = (),
    source_name: str = "kernel.cl",
    max_bytes: int = MAX_BYTES,
    is_checked: bool = True,
    default_sizes: Sequence[tuple[int, ...]] = DEFAULT_GLOBAL_SIZES,
) -> list[InferredLaunch]:
    """Find arguments with which a kernel does its work, within its buffers.

    Args:
        source: OpenCL C, or LLVM IR.
        kernel_name: The kernel.
        global_size: Work-items in each dimension, or several such sizes; where it is None, one of
            `default_sizes`, with as many dimensions as the kernel looks at.
        local_size: Work-items of a work-group; chosen where it is empty.
        scalars: Values of scalar arguments, by name, that are not to be inferred.
        build_options: Passed to the compiler.
        source_name: What to call the source in messages.
        max_bytes: Most bytes of all buffers together.
        is_checked: Whether to run some work-groups, of a small launch and then of the real one, and repair what the
            analysis missed.
        default_sizes: Global sizes of one, two and three dimensions.

    Returns:
        A launch with its reasons for each global size.

    Raises:
        SourceError: The source does not compile.
        KernelNotFoundError: It has no such kernel.
        LaunchError: A size or scalar that was given is not allowed, or the buffers would be too large.
        UnsupportedError: The kernel uses something that the executor does not know.
        MemoryAccessError, BarrierDivergenceError, BudgetError: No repair helped; the error of the last check run.
    """
    bitcode = compile_source(source, build_options, source_name)
    kernel = SymbolicKernel(canonical_kernel(bitcode, kernel_name))
    request = Request(
        local_size=local_size,
        scalars=scalars,
        build_options=build_options,
        source_name=source_name,
        max_bytes=max_bytes,
        is_checked=is_checked,
    )
    inference = _Inference(source, kernel, request)
    if global_size is None:
        return [inference.infer_default(default_sizes[kernel.dimensions - 1])]
    return [inference.infer(size) for size in _global_sizes(global_size)]


def _global_sizes(given: int | tuple[int, ...] | Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if isinstance(given, int):
        return [(given,)]
    if isinstance(given, tuple) and all(isinstance(size, int) for size in given):
        return [given]  # pyright: ignore[reportReturnType]
    return [size for size in given if not isinstance(size, int)]


def _before_halving(value: Polynomial) -> Polynomial:
    """What a power of two is taken of: `n / 2` is one where `n` is."""
    atoms = list(value.atoms)
    if len(value.terms) == 1 and len(atoms) == 1 and atoms[0].kind in ("div", "lshr"):
        return atoms[0].polynomials[0]
    return value


class _TooLargeError(LaunchError):
    """The buffers would need more bytes than are allowed."""


@final
class _Inference:
    """Infers launches of one kernel."""

    def __init__(self, source: str | bytes, kernel: SymbolicKernel, request: Request) -> None:
        self._source, self._kernel, self._request = source, kernel, request
        self._extents: Extents | None = None

    def infer_default(self, size: tuple[int, ...]) -> InferredLaunch:
        """Infer a launch of a default size, or of a smaller one where its buffers would be too large."""
        while True:
            try:
                return self.infer(size)
            except _TooLargeError:
                if max(size) < _LEAST_DEFAULT:
                    raise
                size = tuple(max(1, n // 2) for n in size)

    def infer(self, global_size: tuple[int, ...]) -> InferredLaunch:
        """Infer one launch, small at first, and check it."""
        repairs = Repairs()
        if self._request.is_checked:
            locals_ = self._local_sizes(global_size)
            small = tuple(min(size, _SMALL_GROUPS * group) for size, group in zip(global_size, locals_[0], strict=True))
            if small != global_size:
                repairs = self._checked(small, repairs)[1]
                repairs = replace(repairs, min_bytes={}, min_texels={})  # those are of the small launch
        return self._checked(global_size, repairs)[0]

    def _checked(self, global_size: tuple[int, ...], repairs: Repairs) -> tuple[InferredLaunch, Repairs]:
        """Infer and run until nothing is left to repair."""
        failed: dict[str, PerfVecError] = {}  # by digest, because not every repair changes the launch
        while True:
            try:
                inferred = self._analysed(global_size, repairs)
            except _TooLargeError:
                if repairs.trips_scale < _FEWER_TRIPS**5:
                    raise
                repairs = replace(repairs, trips_scale=repairs.trips_scale * _FEWER_TRIPS)
                continue
            if not self._request.is_checked:
                return inferred, repairs
            digest = inferred.launch.digest
            if digest not in failed:
                try:
                    check_run(inferred.launch, long_budget=_LONG_BUDGET if self._is_bounded() else 0)
                    return inferred, repairs
                except (MemoryAccessError, BudgetError, BarrierDivergenceError, TooMuchLocalError) as error:
                    failed[digest] = error
            repaired = self._repaired(inferred, repairs, failed[digest])
            if repaired is None or len(failed) >= _ROUNDS:
                raise failed[digest]
            repairs = repaired

    def _is_bounded(self) -> bool:
        """Whether the analysis knows that every loop of the last launch ends."""
        assert self._extents is not None
        ranges = Ranges(self._kernel, self._extents.setting)
        return all(ranges.most_trips(header) < math.inf for header in self._kernel.flow.loops)

    # ---- analysis -----------------------------------------------------------------------------------------------

    def _analysed(self, global_size: tuple[int, ...], repairs: Repairs) -> InferredLaunch:
        """The first local size with which all that the program declares is large enough, and a launch of it."""
        candidates = self._local_sizes(global_size)
        candidates = candidates[min(repairs.local_skips, len(candidates) - 1) :]
        best: tuple[int, Scalars, Extents, tuple[InferredArgument, ...]] | None = None
        for scale in (repairs.trips_scale, repairs.trips_scale * _FEWER_TRIPS**2):
            for local_size in candidates:
                found = self._in_setting(global_size, local_size, replace(repairs, trips_scale=scale))
                if best is None or found[0] < best[0]:
                    best = found
                if best[0] == 0:
                    break
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, scalars, extents, arguments = best
        self._check_bytes(arguments)
        self._extents = extents
        setting = extents.setting
        launch = Launch(
            source=self._source,
            kernel_name=self._kernel.kernel.name,
            args=tuple(argument.argument for argument in arguments),
            global_size=setting.global_size,
            local_size=setting.local_size,
            global_offset=setting.global_offset,
            build_options=self._request.build_options,
            source_name=self._request.source_name,
        )
        return InferredLaunch(
            launch=launch,
            arguments=arguments,
            demands=tuple(self._demands(scalars.reasons)),
            repairs=repairs.notes,
        )

    def _check_bytes(self, arguments: tuple[InferredArgument, ...]) -> None:
        buffers = [a.argument for a in arguments if isinstance(a.argument, BufferArg)]
        images = [a.argument for a in arguments if isinstance(a.argument, ImageArg)]
        total = sum(buffer.num_bytes for buffer in buffers) + HELD_BYTES * sum(image.contents.count for image in images)
        if total > self._request.max_bytes:
            raise _TooLargeError(
                f"the buffers and images of kernel {self._kernel.kernel.name!r} need {total} bytes together; "
                f"{self._request.max_bytes} are allowed. Give a smaller global size, or allow more."
            )

    def _in_setting(
        self, global_size: tuple[int, ...], local_size: tuple[int, ...], repairs: Repairs
    ) -> tuple[int, Scalars, Extents, tuple[InferredArgument, ...]]:
        setting = Setting(global_size=global_size, local_size=local_size, scalars=self._given_scalars())
        scalars, extents = self._chosen(setting, repairs)
        if offset := self._needed_offset(extents, len(global_size)):
            scalars, extents = self._chosen(replace(setting, global_offset=offset), repairs)
        arguments = Passing(self._kernel, extents, scalars.reasons, repairs).arguments()
        local_bytes = sum(a.argument.num_bytes for a in arguments if isinstance(a.argument, LocalArg))
        declared = {access.memory for access in self._kernel.accesses if access.memory.kind == "local"}
        local_bytes += sum(memory.num_bytes for memory in declared)
        problems = len(extents.violations()) + (local_bytes > _MOST_LOCAL_BYTES)
        return problems, scalars, extents, arguments

    def _chosen(self, setting: Setting, repairs: Repairs) -> tuple[Scalars, Extents]:
        scalars = Scalars(self._kernel, setting, trips_scale=repairs.trips_scale, size_limit=repairs.size_limit)
        return scalars, Extents(self._kernel, scalars.setting, limits=data_limits(self._kernel, repairs))

    def _needed_offset(self, extents: Extents, dimensions: int) -> tuple[int, ...]:
        """Where global ids have to begin so that no address of a neighbour is negative; empty where at 0."""
        offsets = [0] * dimensions
        for index in range(len(self._kernel.kernel.parameters)):
            for dimension, need in extents.missing_before(index):
                if dimension < dimensions:
                    offsets[dimension] = max(offsets[dimension], need)
        return tuple(offsets) if any(offsets) else ()

    def _given_scalars(self) -> dict[ScalarKey, int | Fraction]:
        given = dict(self._request.scalars or {})
        values: dict[ScalarKey, int | Fraction] = {}
        for index, parameter in enumerate(self._kernel.kernel.parameters):
            if parameter.name[1:] in given:
                value = Fraction(given.pop(parameter.name[1:])).limit_denominator(1 << 24)
                values["scalar", index, 0] = value.numerator if value.denominator == 1 else value
        if given:
            names = ", ".join(parameter.name[1:] for parameter in self._kernel.kernel.parameters)
            raise LaunchError(
                f"kernel {self._kernel.kernel.name!r} has no argument {next(iter(given))!r}; its arguments are: {names}"
            )
        return values

    def _local_sizes(self, global_size: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Local sizes to try, the best first; each divides the global size."""
        required = self._kernel.kernel.required_local_size[: len(global_size)]
        if self._request.local_size or required:
            return [self._request.local_size or required]
        fitting = [
            tuple(math.gcd(size, group) for size, group in zip(global_size, candidate, strict=True))
            for candidate in _LOCAL_SIZES[len(global_size) - 1]
        ]
        return [size for size in dict.fromkeys(fitting) if math.prod(size) <= MAX_LOCAL_SIZE]

    def _demands(self, reasons: Mapping[ScalarKey, ScalarReason]) -> Iterator[str]:
        """What halving loops, divisions and attributes ask of sizes."""
        if self._kernel.kernel.required_local_size:
            yield f"local size must be {self._kernel.kernel.required_local_size} (reqd_work_group_size)"
        for recurrence in self._kernel.recurrences.values():
            halved = _before_halving(recurrence.first)
            if 0 < recurrence.factor < 1 and not halved.is_constant:
                yield f"{in_words(self._kernel, halved)} must be a power of two (a loop halves it)"
        for key, reason in reasons.items():
            if reason.role == "divisor":
                name = self._kernel.kernel.parameters[key[1]].name[1:]
                yield f"{name} must not be 0 ({reason.reason})"

    # ---- repairs ------------------------------------------------------------------------------------------------

    def _repaired(self, inferred: InferredLaunch, repairs: Repairs, error: PerfVecError) -> Repairs | None:
        """What to change after a check run that failed; None where nothing is left to try."""
        if isinstance(error, MemoryAccessError):
            return self._after_bounds_error(inferred, repairs, error)
        if isinstance(error, BudgetError):
            return self._fewer_trips(repairs, "ran past the budget") or self._smaller_data(
                repairs, sorted(self._buffers(inferred)), "ran past the budget"
            )
        if isinstance(error, BarrierDivergenceError):
            return self._other_local_size(inferred, repairs, "not all work-items reached a barrier")
        return self._smaller_sizes(repairs, "too much local memory")

    def _after_bounds_error(
        self, inferred: InferredLaunch, repairs: Repairs, error: MemoryAccessError
    ) -> Repairs | None:
        place = f"byte {error.offset} of {error.memory} (line {error.line})"
        index = next((i for i, a in enumerate(inferred.arguments) if a.name == error.memory), -1)
        if error.space == "image":
            least = 2 * repairs.min_texels.get(index, 128)
            return replace(
                repairs,
                min_texels={**repairs.min_texels, index: least},
                notes=(*repairs.notes, f"image {error.memory} grew to {least} texels along each axis"),
            )
        is_argument = error.space == "buffer" or (
            error.space == "local" and index >= 0 and isinstance(inferred.arguments[index].argument, LocalArg)
        )
        behind = self._extents.data_behind(error.memory, error.line) if self._extents is not None else []
        if not is_argument:
            return (
                self._smaller_data(repairs, behind, place)
                or self._other_local_size(inferred, repairs, place)
                or self._fewer_trips(repairs, place)
                or self._smaller_data(repairs, sorted(self._buffers(inferred)), place)
            )
        argument = inferred.arguments[index].argument
        assert isinstance(argument, BufferArg | LocalArg)
        is_near = 0 <= error.offset < _FARTHEST_GROWTH * max(argument.num_bytes, 1 << 12)
        if is_near and argument.num_bytes >= 4 * max(inferred.arguments[index].min_bytes, 1) and behind:
            is_near = False  # it grew before, and what reaches it is data
        if is_near:
            num_bytes = max(error.offset + error.num_bytes, 2 * argument.num_bytes)
            return replace(
                repairs,
                min_bytes={**repairs.min_bytes, index: num_bytes},
                notes=(*repairs.notes, f"{error.memory} grew to {num_bytes} bytes: a check run accessed {place}"),
            )
        return (
            self._smaller_data(repairs, behind, place)
            or self._fewer_trips(repairs, place)
            or self._smaller_data(repairs, sorted(self._buffers(inferred)), place)
        )

    @staticmethod
    def _buffers(inferred: InferredLaunch) -> set[int]:
        return {
            index
            for index, argument in enumerate(inferred.arguments)
            if isinstance(argument.argument, BufferArg) and argument.role not in ("output", "unused", "counter")
        }

    @staticmethod
    def _smaller_data(repairs: Repairs, indices: Sequence[int], cause: str) -> Repairs | None:
        current = {index: repairs.data_limits.get(index, 1 << 10) for index in indices}
        if not any(current.values()):
            return None
        smaller = {index: limit // 32 for index, limit in current.items()}
        return replace(
            repairs,
            data_limits={**repairs.data_limits, **smaller},
            notes=(*repairs.notes, f"numbers in buffers are at most {max(smaller.values())}: {cause}"),
        )

    def _fewer_trips(self, repairs: Repairs, cause: str) -> Repairs | None:
        if repairs.trips_scale < _FEWER_TRIPS**2:
            return self._smaller_sizes(repairs, cause)
        return replace(
            repairs,
            trips_scale=repairs.trips_scale * _FEWER_TRIPS,
            notes=(*repairs.notes, f"loops that scalars bound have fewer iterations: {cause}"),
        )

    @staticmethod
    def _smaller_sizes(repairs: Repairs, cause: str) -> Repairs | None:
        limit = next((limit for limit in _SIZE_LIMITS if not repairs.size_limit or limit < repairs.size_limit), None)
        if limit is None:
            return None
        return replace(
            repairs,
            trips_scale=1.0,
            size_limit=limit,
            notes=(*repairs.notes, f"scalars that bound ids are at most {limit}: {cause}"),
        )

    def _other_local_size(self, inferred: InferredLaunch, repairs: Repairs, cause: str) -> Repairs | None:
        sizes = self._local_sizes(inferred.launch.global_size)
        at = sizes.index(inferred.launch.local_size)
        if at + 1 >= len(sizes):
            return None
        return replace(
            repairs, local_skips=at + 1, notes=(*repairs.notes, f"local size {inferred.launch.local_size}: {cause}")
        )


class TooMuchLocalError(LaunchError):
    """A work-group would need more local memory than a GPU has."""


def check_run(
    launch: Launch, *, most_groups: int = _CHECK_GROUPS, budget: int = _CHECK_BUDGET, long_budget: int = _LONG_BUDGET
) -> None:
    """Run some work-groups of a launch in the executor, for its bounds checks.

    Args:
        launch: What to run.
        most_groups: About how many work-groups.
        budget: Sub-group instructions of all of them.
        long_budget: Those of one work-group alone, which is run where all of them run past the budget; 0 for none.

    Raises:
        TooMuchLocalError: The launch needs more local memory than a GPU has.
        PerfVecError: As the executor says.
    """
    if launch.local_arg_bytes > MAX_LOCAL_BYTES:
        raise TooMuchLocalError(
            f"kernel {launch.kernel_name!r} would need {launch.local_arg_bytes} bytes of local memory as arguments; no "
            f"GPU has more than {MAX_LOCAL_BYTES}"
        )
    compiled = compile_launch(launch)
    groups = sample_groups(launch.num_groups, most=most_groups).groups.tolist()
    try:
        Execution(compiled, launch, budget=budget).run(groups)
    except BudgetError:
        if not long_budget:
            raise
        Execution(compiled, launch, budget=long_budget).run([groups[len(groups) // 2]])
