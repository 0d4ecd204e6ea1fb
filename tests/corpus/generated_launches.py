"""Generated launches for tests: on a device so small that the executor runs all of their work-groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from perfvec.arch.device import Device, find_device
from perfvec.corpus.draw import Draw
from perfvec.corpus.generated import demands_of
from perfvec.corpus.generator import GeneratedKernel, generate_kernel
from perfvec.corpus.ndrange import sample_ndrange
from perfvec.corpus.sizing import choose_sizes, estimate_s
from perfvec.corpus.suite import SuiteLaunch

_TARGET_S = 8e-6
_LONGEST_S = 1e-4
_MOST_BYTES = 1 << 22


def small_device() -> Device:
    """Two compute units of eight sub-groups each."""
    device = find_device("nvidia-h200")
    compute = replace(
        device.compute,
        compute_units=2,
        max_sub_groups_per_compute_unit=8,
        fp32_flops=device.compute.fp32_flops / 66,
        fp64_flops=device.compute.fp64_flops / 66,
    )
    return replace(device, compute=compute)


def small_launch(seed: int) -> tuple[GeneratedKernel, SuiteLaunch] | None:
    """A small launch of the kernel of a seed; None where even the smallest is large."""
    kernel, draw, device = generate_kernel(seed), Draw(~seed), small_device()
    ndrange = sample_ndrange(draw, device, demands_of(kernel), "underused", is_multiple=draw.chance(70))
    sizes = choose_sizes(draw, kernel, ndrange, device, target_s=_TARGET_S, most_bytes=_MOST_BYTES)
    if sizes is None:
        return None
    names = kernel.names(ndrange.global_size, ndrange.local_size, sizes)
    if estimate_s(kernel, names, device) > _LONGEST_S:
        return None
    return kernel, kernel.launch(ndrange.global_size, ndrange.local_size, sizes)


def small_launches(first_seed: int = 0) -> Iterator[tuple[GeneratedKernel, SuiteLaunch]]:
    """Small launches without end, one a kernel."""
    for seed in count(first_seed):
        if (found := small_launch(seed)) is not None:
            yield found
