"""Launches of the kernels of the CGO'17 data set, which came without arguments: inferred, sized, stored, read back.

A launch is named by what was asked for, such as `cgo17/0073da0b13fa.A/-/2^16 other local size`, so that one can be made
again without the others. The folder holds a file a launch, named by its digest, and `manifest.json`, which has no
kernel text. Which launches a kernel gets follows from the sources, the inference and the tracer alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, final

from perfvec.arguments import ScalarArg
from perfvec.corpus.outside import OutsideSource
from perfvec.corpus.suite import SuiteLaunch
from perfvec.errors import FormatError, LaunchError, PerfVecError
from perfvec.files import whole_file
from perfvec.launch import Launch

if TYPE_CHECKING:
    from perfvec.corpus.inference import InferredLaunch

SUITE = "cgo17"
MANIFEST = "manifest.json"
EXPONENTS = (12, 16, 20, 22)  # of two: work-items
_INSTEAD = (18, 14)  # where one of those takes too long or too much memory
_OTHER_LOCAL_SIZES = ((64,), (32, 4), (32, 2, 2))  # by dimensions; the inference prefers 256, 16 x 16 and 8 x 8 x 4
_LONGER = 8  # times the iterations of a loop whose bound does not follow from the global size
_MOST_BYTES = 256 << 20
_MOST_INSTRUCTIONS = 5e9  # of sub-groups: on a large GPU some 25 ms
# What a kernel's arguments bound loops by, besides the sizes that bound ids.
_UNTIED_ROLES = frozenset(("trips", "offsets", "count"))

Kind: TypeAlias = Literal["", "other local size", "longer loops"]


@final
@dataclass(frozen=True, slots=True)
class Ask:
    """Which launch of a kernel.

    Attributes:
        exponent: Of two: work-items.
        kind: What differs from the inferred launch.
    """

    exponent: int
    kind: Kind = ""

    def __str__(self) -> str:
        return f"2^{self.exponent} {self.kind}".strip()

    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Global sizes of one, two and three dimensions, none much longer than the others."""
        return tuple(
            tuple(1 << (self.exponent + dims - 1 - axis) // dims for axis in range(dims)) for dims in (1, 2, 3)
        )


EVERY_ASK = tuple(
    Ask(exponent, kind)
    for exponent in sorted((*EXPONENTS, *_INSTEAD))
    for kind in ("", "other local size", "longer loops")
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A launch that there is not.

    Attributes:
        name: What it would be called.
        reason: Why.
    """

    name: str
    reason: str


Found: TypeAlias = SuiteLaunch | LeftOut
_Job = TypeVar("_Job")
_Found = TypeVar("_Found")


# ---- making -----------------------------------------------------------------------------------------------------


def make(source: OutsideSource, kernel_name: str, ask: Ask) -> SuiteLaunch:
    """Infer one launch.

    Args:
        source: Where the kernel is.
        kernel_name: The kernel.
        ask: Which launch.

    Raises:
        LaunchError: It needs too much memory, or the kernel has nothing to vary.
        PerfVecError: As `perfvec.corpus.inference.infer_launches`.
    """
    from perfvec.corpus.inference import infer_launches

    infer = partial(
        infer_launches,
        source.text,
        kernel_name,
        build_options=source.build_options,
        source_name=source.name,
        max_bytes=_MOST_BYTES,
    )
    (inferred,) = infer(default_sizes=ask.sizes())
    base = inferred.launch
    if base.num_work_items != 1 << ask.exponent:
        raise LaunchError(f"its buffers would need more than {_MOST_BYTES} bytes; a smaller launch fits")
    if ask.kind == "other local size":
        (inferred,) = infer(global_size=base.global_size, local_size=_other_local_size(inferred))
    elif ask.kind == "longer loops":
        (inferred,) = infer(global_size=base.global_size, local_size=base.local_size, scalars=_longer(inferred))
    if ask.kind and inferred.launch.digest == base.digest:
        raise LaunchError(f"{ask.kind} makes no difference")
    return SuiteLaunch(
        suite=SUITE,
        kernel=f"{source.name}.{kernel_name}",
        family=source.name,
        variant="",
        parameters=str(ask),
        is_size_tied=ask.kind != "longer loops" and not _UNTIED_ROLES & {item.role for item in inferred.arguments},
        launch=inferred.launch,
    )


def _other_local_size(inferred: InferredLaunch) -> tuple[int, ...]:
    fixed = [demand for demand in inferred.demands if demand.startswith("local size must be")]
    if fixed:
        raise LaunchError(fixed[0])
    return _OTHER_LOCAL_SIZES[len(inferred.launch.global_size) - 1]


def _longer(inferred: InferredLaunch) -> dict[str, float]:
    for item in inferred.arguments:
        if item.role == "trips" and isinstance(item.argument, ScalarArg):
            return {item.name: item.argument.values[0] * _LONGER}
    raise LaunchError("no scalar bounds a loop alone")


def launches_of(sources: Sequence[OutsideSource], *, num_processes: int = 1) -> Iterator[list[Found]]:
    """Infer launches of every kernel: four sizes if it can be, another local size, longer loops.

    Each is traced; those that cannot be, or that would take long on any device, are left out.

    Args:
        sources: Where the kernels are.
        num_processes: Processes that share the work.

    Yields:
        Launches and those left out of a source; sources in order.
    """
    yield from _shared(_all_of, [(source,) for source in sources], num_processes)


def again(
    sources: Sequence[OutsideSource], names: Iterable[str], *, num_processes: int = 1
) -> Iterator[list[SuiteLaunch]]:
    """Infer launches by their names.

    Args:
        sources: Where the kernels are.
        names: Names of launches; those of other kernels are passed over.
        num_processes: Processes that share the work.

    Yields:
        Launches of a source, without those that cannot be inferred.
    """
    wanted = frozenset(names)
    yield from _shared(_named_of, [(source, wanted) for source in sources], num_processes)


def _shared(action: Callable[[_Job], _Found], jobs: Sequence[_Job], num_processes: int) -> Iterator[_Found]:
    if num_processes == 1:
        yield from (action(job) for job in jobs)
        return
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(action, jobs)


def _kernels(source: OutsideSource) -> tuple[str, ...]:
    from perfvec.program.frontend import compile_source, kernel_names

    return kernel_names(compile_source(source.text, source.build_options, source.name))


def _name(source: OutsideSource, kernel_name: str, ask: Ask) -> str:
    return f"{SUITE}/{source.name}.{kernel_name}/-/{ask}"


def _named_of(job: tuple[OutsideSource, frozenset[str]]) -> list[SuiteLaunch]:
    source, wanted = job
    found: list[SuiteLaunch] = []
    try:
        kernels = _kernels(source)
    except PerfVecError:
        return found
    for kernel_name in kernels:
        for ask in EVERY_ASK:
            if _name(source, kernel_name, ask) in wanted:
                try:
                    found.append(make(source, kernel_name, ask))
                except PerfVecError:  # counted as missing by whoever wants it
                    continue
    return found


def _all_of(job: tuple[OutsideSource]) -> list[Found]:
    (source,) = job
    try:
        kernels = _kernels(source)
    except PerfVecError as error:
        return [LeftOut(name=f"{SUITE}/{source.name}", reason=_words(error))]
    return [found for kernel_name in kernels for found in _of_kernel(source, kernel_name)]


def _of_kernel(source: OutsideSource, kernel_name: str) -> Iterator[Found]:
    taken: dict[int, SuiteLaunch] = {}
    most = max(EXPONENTS)
    for exponent in (*EXPONENTS, *_INSTEAD):
        if exponent > most or len(taken) == len(EXPONENTS):
            continue
        found, instructions = _checked(source, kernel_name, Ask(exponent))
        yield found
        if isinstance(found, LeftOut):
            most = exponent - 1
            continue
        taken[exponent] = found
        while instructions * 2.0 ** (most - exponent) > _MOST_INSTRUCTIONS:  # work grows at least as the size does
            most -= 1
    if not taken:
        return
    largest = max(exponent for exponent in taken if exponent <= 20)
    middle = max(exponent for exponent in taken if exponent <= 16)
    yield _checked(source, kernel_name, Ask(largest, "other local size"))[0]
    yield _checked(source, kernel_name, Ask(middle, "longer loops"))[0]


def _checked(source: OutsideSource, kernel_name: str, ask: Ask) -> tuple[Found, float]:
    """A launch that can be traced and ends, and its instructions."""
    from perfvec.apply.tracing import trace

    try:
        entry = make(source, kernel_name, ask)
        instructions = float(trace(entry.launch).token_weight.sum())
        if instructions > _MOST_INSTRUCTIONS:
            raise LaunchError(f"{instructions:.1e} instructions of sub-groups; {_MOST_INSTRUCTIONS:.0e} are enough")
    except PerfVecError as error:
        return LeftOut(name=_name(source, kernel_name, ask), reason=_words(error)), 0.0
    return entry, instructions


def _words(error: PerfVecError) -> str:
    """The error's name alone where the compiler speaks: it quotes the source."""
    name = type(error).__name__
    return name if name == "SourceError" else f"{name}: {error}"


# ---- storing ----------------------------------------------------------------------------------------------------


def write_folder(folder: Path, found: Iterable[Found]) -> dict[str, int]:
    """Write launches, none twice, and then the manifest.

    Args:
        folder: Where; it is made.
        found: Launches and those left out.

    Returns:
        How many launches, kernels, repeated and left-out launches, and bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries: dict[str, SuiteLaunch] = {}
    left_out: list[LeftOut] = []
    repeated = 0
    for item in found:
        if isinstance(item, LeftOut):
            left_out.append(item)
            continue
        digest = item.launch.digest
        repeated += digest in entries
        if digest not in entries:
            entries[digest] = item
            item.launch.save(folder / f"{digest}.h5")
    manifest = {
        "launches": [_described(digest, entry) for digest, entry in entries.items()],
        "left_out": [{"name": item.name, "reason": item.reason} for item in left_out],
    }
    with whole_file(folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return {
        "launches": len(entries),
        "kernels": len({entry.kernel for entry in entries.values()}),
        "not_tied": sum(not entry.is_size_tied for entry in entries.values()),
        "repeated": repeated,
        "left_out": len(left_out),
        "bytes": sum((folder / f"{digest}.h5").stat().st_size for digest in entries),
    }


def _described(digest: str, entry: SuiteLaunch) -> dict[str, object]:
    return {
        "digest": digest,
        "source": entry.family,
        "kernel": entry.launch.kernel_name,
        "asked": entry.parameters,
        "global_size": list(entry.launch.global_size),
        "local_size": list(entry.launch.local_size),
        "is_size_tied": entry.is_size_tied,
    }


def read_folder(folder: Path) -> list[SuiteLaunch]:
    """Read launches back.

    Raises:
        FormatError: The manifest or a launch is missing or damaged, or they do not belong together.
    """
    path = folder / MANIFEST
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["launches"]
        return [_read(folder, item) for item in listed]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"cannot read {path}: {error!r}; write the folder again with `launches`") from error


def _read(folder: Path, item: dict[str, object]) -> SuiteLaunch:
    digest = str(item["digest"])
    launch = Launch.load(folder / f"{digest}.h5")
    if launch.digest != digest:
        raise FormatError(f"{folder / digest}.h5 holds the launch {launch.digest}; write the folder again")
    return SuiteLaunch(
        suite=SUITE,
        kernel=f"{item['source']}.{item['kernel']}",
        family=str(item["source"]),
        variant="",
        parameters=str(item["asked"]),
        is_size_tied=bool(item["is_size_tied"]),
        launch=launch,
    )
