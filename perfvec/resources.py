"""The counted coordinates: what a launch uses, in units, and what a device charges for each, in seconds per unit.

They are the first coordinates of every program vector and of every device vector, in this order. The program side
counts them from a trace; the architecture side starts them from a datasheet. Both know only the names below.
"""

from __future__ import annotations

from dataclasses import dataclass

# Bumped whenever a resource is added, dropped or counted differently: a stored vector is refused on a mismatch.
RESOURCES_VERSION = 3
# Numbers of resident sub-groups at which a launch's parallelism is probed (see `issue_per_slot_*`): a fraction of
# one compute unit, a small device, a large one, more than any device holds.
SLOT_LADDER = (16, 256, 2048, 16384)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One counted coordinate."""

    name: str
    unit: str
    meaning: str


def _ladder(prefix: str, unit: str, meaning: str) -> tuple[Resource, ...]:
    return tuple(
        Resource(name=f"{prefix}_{slots}", unit=unit, meaning=meaning.format(slots=slots)) for slots in SLOT_LADDER
    )


RESOURCES: tuple[Resource, ...] = (
    Resource(name="launch", unit="launch", meaning="the launch itself: always 1"),
    Resource(name="work_groups", unit="work-group", meaning="work-groups to dispatch"),
    Resource(name="fp32_issue", unit="sub-group instruction", meaning="fp32 and fp16 add, multiply, fma, compare"),
    Resource(name="fp64_issue", unit="sub-group instruction", meaning="fp64 add, multiply, fma, compare"),
    Resource(name="int_issue", unit="sub-group instruction", meaning="integer arithmetic, logic, shift, conversion"),
    Resource(name="special_issue", unit="sub-group instruction", meaning="division, roots, transcendental functions"),
    Resource(name="other_issue", unit="sub-group instruction", meaning="branches, moves, selects, address arithmetic"),
    Resource(name="local_passes", unit="pass", meaning="local-memory accesses times their bank passes"),
    Resource(name="l1_sectors", unit="32 B sector", meaning="sectors of all global and constant accesses"),
    Resource(name="l2_sectors", unit="32 B sector", meaning="of those, sectors not reused soon inside the work-group"),
    Resource(name="dram_sectors", unit="32 B sector", meaning="of those, sectors touched first, or again after long"),
    Resource(name="atomic_passes", unit="pass", meaning="atomics times the most lanes that share one address"),
    Resource(name="serial_atomics", unit="atomic", meaning="atomics on the hottest address, combined where possible"),
    Resource(name="barriers", unit="sub-group barrier", meaning="barriers reached by a sub-group"),
    *_ladder("issue_per_slot", "sub-group instruction", "instructions a slot runs if {slots} sub-groups are resident"),
    *_ladder("access_per_slot", "sub-group access", "global accesses a slot makes if {slots} sub-groups are resident"),
)
NUM_RESOURCES = len(RESOURCES)
RESOURCE_INDEX = {resource.name: index for index, resource in enumerate(RESOURCES)}
