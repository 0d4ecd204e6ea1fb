"""How far accesses reach: which of their sectors miss the L1, and which the L2.

Three kinds of sectors are told apart: those that no work-group touched before, those that only others did, and those
that the work-group itself touched. A distance of the trace is that of work-groups that run one after another; on a
device `n` of them run together, and `m` sub-groups in each. Between two touches by one sub-group the others touch a
share `i` (`interleaving`) of as much, up to all that they touch at all:

    L1:  min(d · (1 + i (m · n_unit - 1)), max(d, L) · n_unit)      n_unit work-groups in the unit, L lines of each
    L2:  min(d · (1 + i (m · n_all - 1)), max(d, L) · n_all, F)     n_all in all units, F lines of the launch

What other work-groups touched is searched for in the L2, at the trace's distance scaled up from the sample to the
launch, F at most. First touches of the sample that are none in the launch, for it has fewer lines, were touched by
neighbours that the sample lacks, or at any time where lanes' addresses are irregular (`Workload.scattered_lines`). An
instruction whose lines all work-groups touch finds them in the L1 once one of the unit's work-groups has brought them.
First touches of the launch hit the L2 if it ran before (warm) and the distance F allows.

Source:
    `caches.hit_probability`; reuse distances of concurrent work-groups interleaved: Nugteren, van den Braak, Corporaal,
    Bal, "A Detailed GPU Cache Model Based on Reuse Distance Theory", HPCA 2014. The closed form of the interleaving
    above is this project's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.caches import bucket_distances, hit_probability
from perfvec.arch.timing.pipes import is_space
from perfvec.arch.timing.workload import RUN_LENGTH
from perfvec.trace_data import LINE_BYTES, STRIDE_CLASSES, SUB_GROUP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.dispatch import Residency
    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Shares of accesses' sectors, and probabilities that one of them is slow; all `(A, M)`, 0 to 1.

    Attributes:
        misses_l1: Share that misses the L1.
        misses_l2: Share that misses both.
        any_misses_l1: Whether any sector misses the L1.
        any_misses_l2: Whether any misses both.
        evicts: Share that, being stored, makes a line of the L2 dirty that it has not got.
        evicted: Share of what is stored that is evicted from the L2 before the launch comes to it again; `(M,)`.
    """

    misses_l1: NDArray[np.float64]
    misses_l2: NDArray[np.float64]
    any_misses_l1: NDArray[np.float64]
    any_misses_l2: NDArray[np.float64]
    evicts: NDArray[np.float64]
    evicted: NDArray[np.float64]


def find_reach(workload: Workload, machines: Machines, residency: Residency) -> Reach:
    """Find how far each access reaches on each configuration."""
    memory = workload.trace.memory[workload.access_outcome]
    sectors = np.maximum(memory["sectors"], 1.0)
    bucket, bucket_device = memory["reuse_work_group"], memory["reuse_device"]
    is_private = is_space(workload.trace.static[workload.access_static], "private").astype(np.int64)
    # A private array is written before it is read; no level has to be asked for it.
    cold_group = np.where(is_private, 0.0, memory["cold_sectors_work_group"] / sectors)[:, None]
    cold_sample = np.where(is_private, 0.0, memory["cold_sectors_device"] / sectors)[:, None]
    missed, gone_again, gone_others = (1.0 - table for table in _hit_tables(workload, machines, residency))
    stays_M = hit_probability(np.array(workload.footprint_lines), machines["l2_bytes"], machines["l2_ways"])
    gone_M = 1.0 - stays_M * machines["is_warm"]
    alone = 1.0 - workload.static_shared[workload.access_static][:, None] * (
        1.0 - 1.0 / _sharers(workload, machines, residency)
    )
    again = (1.0 - cold_group) * missed[is_private, bucket]
    again_far = again * gone_again[is_private, bucket]
    # First touches of the sample that the launch has made before: anywhere if lanes go anywhere, else near.
    share = workload.access_new[:, None]
    is_irregular = memory["stride_class"] == STRIDE_CLASSES.index("irregular")
    anywhere = (is_irregular * workload.static_scattered[workload.access_static])[:, None] * (1.0 - share)
    scattered, new = cold_sample * anywhere, cold_sample * share
    scattered_lines = np.array(workload.scattered_lines)
    gone_scattered = 1.0 - hit_probability(scattered_lines, machines["l2_bytes"], machines["l2_ways"])
    others = np.maximum(cold_group * alone - new - scattered, 0.0)
    others_far = others * gone_others[bucket_device] + scattered * gone_scattered
    touched = ((bucket > 0) | (is_private > 0))[:, None]
    first_of_all = (cold_sample > 0) * (share * gone_M + anywhere * gone_scattered)
    is_new = (cold_sample > 0) * (share + anywhere)
    any_again = touched * missed[is_private, bucket]
    return Reach(
        misses_l1=np.maximum(cold_group * alone, new + scattered) + again,
        misses_l2=new * gone_M + others_far + again_far,
        any_misses_l1=1.0 - (1.0 - (cold_group > 0) * np.maximum(alone, is_new)) * (1.0 - any_again),
        any_misses_l2=1.0
        - (1.0 - first_of_all)
        * (1.0 - (others > 0) * alone * gone_others[bucket_device])
        * (1.0 - any_again * gone_again[is_private, bucket]),
        evicts=new * (1.0 - stays_M) + others_far + again_far,
        evicted=1.0 - stays_M,
    )


def _hit_tables(
    workload: Workload, machines: Machines, residency: Residency
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Hits of the L1 and of the L2 by what the work-group touched, and of the L2 by what others did; by bucket.

    The first two are `(2, B, M)`, with those of private memory second; the last is `(B, M)`.
    """
    context = workload.trace.context
    distance = bucket_distances()[:, None]
    sub_groups = np.ceil(context.local_size / SUB_GROUP_SIZE)
    in_unit, in_all = residency.groups_together, residency.groups_on_device
    of_group = np.maximum(distance, workload.group_lines)
    between = machines["interleaving"]
    near = _among(distance, sub_groups * in_unit, between)
    near = np.minimum(near, _among(of_group, in_unit, 1.0))
    far = np.minimum(_among(distance, sub_groups * in_all, between), _among(of_group, in_all, 1.0))
    far = np.minimum(far, workload.footprint_lines)
    num_traced = len(workload.group_weight)
    is_neighbour = distance <= RUN_LENGTH * workload.group_lines
    across = np.where(is_neighbour, distance, distance * max(1.0, context.num_work_groups / num_traced))
    l2_bytes, l2_ways = machines["l2_bytes"], machines["l2_ways"]
    by_others = hit_probability(np.minimum(across, workload.footprint_lines), l2_bytes, l2_ways)
    # Private arrays of sub-groups have no line in common; their distances are taken to be all that one has.
    private = np.full_like(distance, context.private_mem_bytes * SUB_GROUP_SIZE / LINE_BYTES)
    near = np.stack([near, _among(private, sub_groups * in_unit, between)])
    far = np.stack([far, _among(private, sub_groups * in_all, between)])
    tables = (
        hit_probability(near, residency.l1_bytes, machines["l1_ways"]),
        hit_probability(far, l2_bytes, l2_ways),
        by_others + np.zeros((1, len(machines))),
    )
    for table in tables:  # nothing to look for: no such sectors, or those of neighbours that the sample lacks
        table[..., 0, :] = table[..., 1, :]
    return tables


def _among(
    distance: NDArray[np.float64], number: NDArray[np.float64], between: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Distance of one of a number of sub-groups or work-groups that run together and each touch as much."""
    return distance * (1.0 + between * (number - 1.0))


def _sharers(workload: Workload, machines: Machines, residency: Residency) -> NDArray[np.float64]:
    """Work-groups of a unit that come to a line before it leaves the L1, if all work-groups touch it; `(M,)`."""
    lines = residency.l1_bytes / LINE_BYTES / max(workload.group_lines, 1.0)
    return np.where(machines["l1_bytes"] > 0, np.clip(np.maximum(lines, 1.0), 1.0, residency.sharing_groups), 1.0)
