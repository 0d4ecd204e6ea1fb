"""Every overload of clang's own OpenCL header that touches memory, images, the launch or others is translated.

Those that only compute a value are in `test_builtins_overloads.py`; what these do is tested elsewhere.
"""

from __future__ import annotations

import re

from perfvec.program.frontend import compile_source, keep_kernel
from perfvec.program.ir import parse_kernel
from perfvec.program.native import translate
from tests.program.test_builtins_overloads import header_overloads

EACH = 40  # calls of a kernel
_EFFECTS = re.compile(
    r"atom(ic)?_\w+|vloada?(_half)?\d*|vstorea?(_half)?\d*(_rt[ezpn])?|async_work_group_\w+|prefetch|barrier|"
    r"(read|write)_image\w+|get_image_\w+|(read_|write_)?mem_fence|get_(work_dim|(global|local|group|num_groups)\w*)"
)
# OpenCL C 2.0 and vendors' extensions: the header has them behind conditions.
_NOT_OURS = re.compile(
    r"atomic_(\w*explicit|init|load|store|flag|fetch|exchange|compare|work_item)|enqueued|linear_id|msaa|depth|"
    r"read_write|scope|mip|lod|gradient|sub_group|atomic_\w+\((volatile )?(unsigned )?(int|float) "
)
_PRAGMAS = "".join(
    f"#pragma OPENCL EXTENSION {name} : enable\n"
    for name in ("cl_khr_fp16", "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics", "cl_khr_3d_image_writes")
)
_POINTERS = {"global": "g", "local": "l", "constant": "c"}


def call(result: str, name: str, parameters: str, images: set[str]) -> str:
    """A call of a function whose arguments come from a kernel's; images are added to those that the kernel takes."""
    passed = []
    for text in filter(lambda text: text not in ("", "void"), map(str.strip, parameters.split(","))):
        plain = re.sub(r"\b(volatile|const)\b ?|__(?=global|local|constant|private|read_only|write_only)", "", text)
        plain = plain.replace("unsigned ", "u")
        match = re.fullmatch(r"((?:\w+ )??\w+ ?\*?) ?(?:[a-z]\w*)?", plain)
        assert match is not None, text
        type_ = match[1].strip()
        if "image" in type_:
            images.add(type_)
            passed.append(type_.replace(" ", "_"))
        elif type_.endswith("*"):
            passed.append(f"({type_}){_POINTERS.get(type_.split()[0], 'p')}")
        else:
            passed.append({"sampler_t": "s", "event_t": "0"}.get(type_, f"({type_})i"))
    text = f"{name}({', '.join(passed)});"
    plain = result.removesuffix(" __purefn")
    return text if plain in ("void", "event_t") else f"*(global {plain} *)g = {text}"


def test_every_overload_of_the_header_is_translated():
    overloads = [
        overload
        for overload in header_overloads()
        if _EFFECTS.fullmatch(overload[1]) and not _NOT_OURS.search(f"{overload[1]}({overload[2]}) {overload[2]}")
    ]
    assert len(overloads) > 1500
    for start in range(0, len(overloads), EACH):
        images: set[str] = set()
        calls = "\n".join(call(*overload, images) for overload in overloads[start : start + EACH])
        taken = "".join(f", {type_} {type_.replace(' ', '_')}" for type_ in sorted(images))
        source = (
            f"{_PRAGMAS}kernel void k(global char *g, local char *l, constant char *c, int i, sampler_t s{taken}) "
            f"{{ private char p[512]; for (int j = 0; j < 512; j++) p[j] = g[j];\n{calls}\n}}"
        )
        program = keep_kernel(compile_source(source), "k", optimise=False)  # which would drop what is not used
        kernel = parse_kernel(program.ir, "k", is_optimised=False)
        assert translate(kernel, texel_bytes={5 + number: 16 for number in range(len(images))}).ir
