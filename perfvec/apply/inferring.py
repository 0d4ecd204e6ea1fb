"""Infer the arguments of the kernels of a file, and write launches of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perfvec.errors import ConfigError, KernelNotFoundError
from perfvec.launch import read_source

if TYPE_CHECKING:
    from perfvec.corpus.inference import InferredLaunch


def infer_file(
    path: Path,
    *,
    kernel_name: str = "",
    global_size: tuple[int, ...] | None = None,
    local_size: tuple[int, ...] = (),
    scalars: Mapping[str, float] | None = None,
    build_options: tuple[str, ...] = (),
    max_bytes: int = 1 << 30,
    on_kernel: Callable[[str, int, int], None] | None = None,
) -> list[InferredLaunch]:
    """Infer a launch of one kernel of a source, or of each.

    Args:
        path: OpenCL C, LLVM IR or bitcode.
        kernel_name: The kernel; all where it is empty.
        global_size: Work-items; chosen by the kernel where it is None.
        local_size: Work-items of a work-group; chosen where it is empty.
        scalars: Values of scalar arguments, by name, that are not to be inferred.
        build_options: Passed to the compiler.
        max_bytes: Most bytes of all buffers of a launch together.
        on_kernel: Called with a text, kernels done and kernels in all.

    Raises:
        PerfVecError: The file cannot be read, has no kernel, or there is no launch: see `infer_launches`.
    """
    from perfvec.corpus.inference import infer_launches
    from perfvec.program.frontend import compile_source, kernel_names

    source = read_source(path)
    names = kernel_names(compile_source(source, build_options, path.name), path.name)
    if not names:
        raise KernelNotFoundError(f"{path.name} has no kernel; write one, with the word kernel before its type")
    found: list[InferredLaunch] = []
    chosen = (kernel_name,) if kernel_name else names
    for number, name in enumerate(chosen):
        if on_kernel is not None:
            on_kernel(name, number, len(chosen))
        found += infer_launches(
            source,
            name,
            global_size=global_size,
            local_size=local_size,
            scalars=scalars,
            build_options=build_options,
            source_name=path.name,
            max_bytes=max_bytes,
        )
    return found


def write_launches(launches: list[InferredLaunch], folder: Path) -> list[Path]:
    """Write each launch to a file of its kernel's name.

    Raises:
        ConfigError: The folder cannot be made.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to the folder {folder}: {error}; create the folder above it first") from error
    paths = [folder / f"{inferred.launch.kernel_name}.h5" for inferred in launches]
    for inferred, path in zip(launches, paths, strict=True):
        inferred.launch.save(path)
    return paths


def launch_options(inferred: InferredLaunch) -> str:
    """A launch as options of the command line; "" where it has a global offset, for which there is none."""
    launch = inferred.launch
    if any(launch.global_offset):
        return ""
    words = ["--kernel", launch.kernel_name]
    words += ["--global", ",".join(map(str, launch.global_size)), "--local", ",".join(map(str, launch.local_size))]
    for argument in launch.args:
        words += ["--arg", str(argument)]
    if launch.build_options:
        words.append(f"--build-options={' '.join(launch.build_options)}")
    return shlex.join(words)
