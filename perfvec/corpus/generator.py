"""Kernels drawn from a grammar: a seed and `GENERATOR_VERSION` determine the source byte for byte.

    kernel    = traversal, value type, one to four stages, store
    traversal = item (an element each) | coarse (several each) | grid (a loop over the grid) | group (one a work-group)
    stage     = stream | copy | stencil | compute | branch | rows | chase | search | escape | private | table | mix
              | tile | reduce | atomic | histogram | append
    loop      = trips: literal | macro | argument | data | lane
    read      = unit | broadcast | rows | strided | wrapped | transposed | shifted | clamped | indirect | hashed

A kernel is drawn as records (`Structure`), which are then written as OpenCL C. With the source come its arguments, as
suites write them, and what each launch must choose (`Size`). Every kernel ends: loops are bounded, and atomics by
compare and exchange succeed for one work-item each time. No access leaves its buffer, whatever the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from perfvec.arguments import parse_argument
from perfvec.corpus.draw import Draw
from perfvec.corpus.expressions import evaluate
from perfvec.corpus.generator_access import Scope
from perfvec.corpus.generator_structure import Structure, draw_structure
from perfvec.corpus.generator_traversal import TRAVERSALS
from perfvec.corpus.generator_writer import Cost, Size, Writer
from perfvec.corpus.suite import SuiteLaunch, expand_argument
from perfvec.launch import Launch

# Bumped whenever a seed gives another source or other arguments: stored corpora name it.
GENERATOR_VERSION = 1
SUITE = "generated"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedKernel:
    """A kernel, and what its launches must choose.

    Attributes:
        seed: What it was drawn from.
        structure: How it was drawn.
        source: OpenCL C.
        kernel_name: The kernel function.
        args: Arguments in the form of suites, over the names of a launch.
        sizes: What a launch must choose.
        macros: Names that build options define.
        buffers: Count and element bytes of each buffer.
        costs: What a work-item does, roughly.
        local_item_bytes: Local memory for each work-item of a group.
        local_fixed_bytes: Other local memory.
        is_power_of_two: Whether work-groups must have a power of two of work-items.
        is_integer: Whether no float takes part, so that results are the same on all devices.
        is_deterministic: Whether results do not depend on the order of work-items.
    """

    seed: int
    structure: Structure
    source: str
    kernel_name: str
    args: tuple[str, ...]
    sizes: tuple[Size, ...]
    macros: tuple[str, ...]
    buffers: tuple[tuple[str, int], ...]
    costs: tuple[Cost, ...]
    local_item_bytes: int
    local_fixed_bytes: int
    is_power_of_two: bool
    is_integer: bool
    is_deterministic: bool

    @property
    def name(self) -> str:
        """What to call it in tables."""
        return f"g{self.seed}_{self.kernel_name}"

    @property
    def family(self) -> str:
        """See `Structure.family`."""
        return self.structure.family

    def names(
        self, global_size: tuple[int, ...], local_size: tuple[int, ...], sizes: Mapping[str, int]
    ) -> dict[str, int]:
        """All names that arguments, macros and costs may use.

        Args:
            global_size: Work-items in each dimension.
            local_size: The same of a work-group.
            sizes: A number for each of `sizes` that is at hand, and "slack": elements that are missing to the last
                work-item of each dimension.
        """
        names = {"LX": local_size[0], "L": 1, "items": 1, "groups": 1, **sizes}
        for dim, (size, local) in enumerate(zip(global_size, local_size, strict=True)):
            names[f"L{'XYZ'[dim]}"] = local
            names[f"G{dim}"] = size
            names["L"] *= local
            names["items"] *= size
            names["groups"] *= size // local
        slack = sizes.get("slack", 0)
        ends = [max(size - min(slack, local - 1), 1) for size, local in zip(global_size, local_size, strict=True)]
        if self.structure.dims > 1:
            names.update(zip(("w", "h", "d"), ends, strict=False))
            names.update({key: value for key, value in sizes.items() if key in ("h", "d")})
            names["n"] = 1
            for axis in ("w", "h", "d")[: self.structure.dims]:
                names["n"] *= names[axis]
        elif self.structure.traversal == "group":
            names["n"] = names["groups"]
        elif self.structure.traversal == "coarse":
            names["n"] = max(names["items"] * names.get("COARSE", 1) - slack, 1)
        elif self.structure.traversal == "item":
            names["n"] = ends[0]
        return names

    def launch(
        self, global_size: tuple[int, ...], local_size: tuple[int, ...], sizes: Mapping[str, int]
    ) -> SuiteLaunch:
        """A launch.

        Args:
            global_size: Work-items in each dimension.
            local_size: The same of a work-group.
            sizes: As for `names`, and complete.

        Raises:
            ConfigError: One of `sizes` is missing.
            LaunchError: The sizes make no launch.
        """
        names = self.names(global_size, local_size, sizes)
        macros = {name: evaluate(name, names) for name in self.macros}
        return SuiteLaunch(
            suite=SUITE,
            kernel=self.name,
            family=self.family,
            variant=",".join(f"{key}={value}" for key, value in macros.items()),
            parameters=",".join(
                (
                    f"global={'x'.join(map(str, global_size))}",
                    f"local={'x'.join(map(str, local_size))}",
                    *(f"{key}={value}" for key, value in sizes.items() if key not in macros),
                )
            ),
            is_size_tied=self.structure.is_size_tied,
            launch=Launch(
                source=self.source,
                kernel_name=self.kernel_name,
                args=tuple(
                    parse_argument(expand_argument(text, names), position=position)
                    for position, text in enumerate(self.args)
                ),
                global_size=global_size,
                local_size=local_size,
                build_options=tuple(f"-D{key}={value}" for key, value in macros.items()),
                source_name=f"{self.name}.cl",
            ),
        )


def generate_kernel(seed: int) -> GeneratedKernel:
    """Draw a kernel.

    Args:
        seed: From 0 to 2^64 - 1; the same seed gives the same kernel for ever, within a `GENERATOR_VERSION`.
    """
    draw = Draw(seed)
    structure = draw_structure(draw)
    return _write(seed, structure, draw)


# ---- writing ----------------------------------------------------------------------------------------------------


def _write(seed: int, structure: Structure, draw: Draw) -> GeneratedKernel:
    out = Writer(draw=draw, is_integer=not structure.value.is_float)
    scope = Scope(
        out=out,
        value=structure.value,
        dims=structure.dims,
        is_grouped=structure.needs_group,
        is_cooperative=structure.traversal == "group",
    )
    TRAVERSALS[structure.traversal](structure, scope)
    kernel_name = "_".join(type(stage).__name__.lower() for stage in structure.stages)
    declared = ",\n    ".join(out.parameters)
    head = [f"    const int {name} = {text};" for name, text in out.prologue.items()]
    lines = [
        f"// {structure.family}, seed {seed}, generator {GENERATOR_VERSION}",
        f"__kernel void {kernel_name}(\n    {declared})",
        "{",
        *(f"    {text}" for text in out.locals),
        *head,
        *out.body,
        "}",
        "",
    ]
    source = "\n".join(lines)
    if "double" in source:
        source = f"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n{source}"
    return GeneratedKernel(
        seed=seed,
        structure=structure,
        source=source,
        kernel_name=kernel_name,
        args=tuple(out.args),
        sizes=tuple(out.sizes),
        macros=tuple(sorted(out.macros)),
        buffers=tuple(out.buffers),
        costs=tuple(out.costs),
        local_item_bytes=out.local_item_bytes,
        local_fixed_bytes=out.local_fixed_bytes,
        is_power_of_two=out.is_power_of_two,
        is_integer=out.is_integer,
        is_deterministic=out.is_deterministic,
    )
