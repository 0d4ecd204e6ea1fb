"""Trace a launch: what its sub-groups execute, on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perfvec.errors import ConfigError, FormatError, KernelNotFoundError
from perfvec.launch import FORMAT as LAUNCH_FORMAT
from perfvec.launch import Launch, read_source
from perfvec.trace_data import FORMAT as TRACE_FORMAT
from perfvec.trace_data import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from perfvec.trace_data import TraceSummary

STORED_SUFFIXES = (".h5", ".hdf5")


def trace(
    launch: Launch,
    *,
    work_groups: int | Literal["all"] | None = None,
    budget: int | None = None,
    on_printf: Callable[[str], None] | None = None,
) -> Trace:
    """Execute a sample of a launch's work-groups and record what they do. No GPU is needed.

    Args:
        launch: What to trace.
        work_groups: About how many work-groups to execute, or "all"; the tracer's own choice where it is None.
        budget: Most sub-group instructions to execute before giving up; where it is None, the tracer cuts off
            what runs past its own, and the trace's caveat says so.
        on_printf: Called once with what the executed work-groups printed by printf, if anything; before an error is
            raised, too. Without it the text is dropped.

    Raises:
        ConfigError: `work_groups` is below 1.
        PerfVecError: The source does not compile, the kernel or its arguments are not as given, or the kernel does
            what it must not: see `perfvec.program.tracer.trace_launch`.
    """
    from perfvec.program.tracer import trace_launch

    return trace_launch(launch, work_groups=_number_of(work_groups), budget=budget, on_printf=on_printf)


def trace_to_file(
    launch: Launch,
    path: str | Path,
    *,
    work_groups: int | Literal["all"] | None = None,
    budget: int | None = None,
    on_printf: Callable[[str], None] | None = None,
) -> TraceSummary:
    """As `trace(...).save(path)`, but the file is written while the launch runs, so that long traces fit in memory.

    Raises:
        ConfigError: `work_groups` is below 1.
        FormatError: The folder does not exist.
        PerfVecError: As `trace`.
    """
    from perfvec.program.tracer import trace_to_file as write

    return write(launch, path, work_groups=_number_of(work_groups), budget=budget, on_printf=on_printf)


def _number_of(work_groups: int | Literal["all"] | None) -> int | None:
    """Work-groups as the tracer takes them: None for all of them."""
    if isinstance(work_groups, int) and work_groups < 1:
        raise ConfigError(f"work_groups is {work_groups}; give 1 or more, or all")
    from perfvec.program.tracer import DEFAULT_GROUPS

    return DEFAULT_GROUPS if work_groups is None else None if work_groups == "all" else work_groups


def the_kernel(path: str | Path, build_options: tuple[str, ...] = ()) -> str:
    """Name of the kernel of a source that has only one.

    Raises:
        LaunchError: The file cannot be read.
        SourceError: The source does not compile.
        KernelNotFoundError: It has no kernel, or several.
    """
    from perfvec.program.frontend import compile_source, kernel_names

    name = Path(path).name
    names = kernel_names(compile_source(read_source(path), build_options, name), name)
    if len(names) != 1:
        advice = "say which with --kernel" if names else "write one, with the word kernel before its type"
        raise KernelNotFoundError(f"{name} has {len(names)} kernels: {', '.join(names) or 'none'}; {advice}")
    return names[0]


def read_stored(path: str | Path) -> Launch | Trace:
    """Read a launch or a trace from the file that `Launch.save` or `Trace.save` wrote.

    Raises:
        FormatError: The file is missing, damaged, of another kind or version.
    """
    import h5py

    readers: dict[str, Callable[[str | Path], Launch | Trace]] = {LAUNCH_FORMAT: Launch.load, TRACE_FORMAT: Trace.load}
    if not Path(path).is_file():
        raise FormatError(f"{path} does not exist or is not a file")
    try:
        with h5py.File(path, "r") as file:
            kind = str(file.attrs.get("format"))
    except OSError as error:
        raise FormatError(f"{path} is not a readable HDF5 file ({error}); write it again") from error
    if kind not in readers:
        raise FormatError(f"{path} holds {kind!r}; allowed are {' and '.join(readers)}, as perfvec trace writes them")
    return readers[kind](path)


def launch_of(source: Launch | Trace) -> Launch:
    """The launch of a launch or of a trace."""
    return source.launch if isinstance(source, Trace) else source
