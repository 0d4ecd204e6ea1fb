"""The resources: what a launch uses, in units, and what a device charges for each, in seconds per unit.

They are the first coordinates of every program vector and of every device vector, in this order. The first of them are
counted: the program side counts them from a trace, the architecture side prices them from a datasheet. The others are
timed: how long the launch would take on a few archetypes, by the timing model, cause by cause. A device that is twice
as fast as an archetype in one respect charges half a second for a second of that cause.
"""

from __future__ import annotations

from dataclasses import dataclass

# Bumped whenever a resource is added, dropped or counted differently: a stored vector is refused on a mismatch.
RESOURCES_VERSION = 5
# Numbers of resident sub-groups at which a launch's parallelism is probed (see `issue_per_slot_*`): a fraction of
# one compute unit, a small device, a large one, more than any device holds.
SLOT_LADDER = (16, 256, 2048, 16384)
# Where the timing model says that time goes.
CAUSES = (
    "issue",  # schedulers and arithmetic pipes are busy
    "dependence",  # a sub-group waits for arithmetic results
    "local",  # local memory: its banks, or waiting for it
    "l1",  # L1: its bandwidth, or waiting for hits
    "l2",
    "dram",
    "atomics",
    "barrier",
    "dispatch",  # work-groups are started
    "launch",  # overhead of the launch
    "tail",  # units that have run out of work-groups wait for the others
)
# Numbers of devices of a design space: eight that are far from each other in how times are spread, and the first of its
# devices for training.
_OF_SPACE = (
    *(67, 115, 131, 150, 192, 201, 244, 246),
    *(0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27),
    *(29, 30, 32, 33, 36, 37, 40, 41, 42, 43, 44, 45, 47, 48, 49, 52, 54, 56, 57, 58, 59, 60, 61),
)
# Devices whose times are coordinates: real ones of several makers and ages, a CPU, and others of a design space. How
# well they span the space: experiments.foundation.span.
ARCHETYPES = (
    "nvidia-h200",
    "nvidia-a100-sxm4-80gb",
    "nvidia-gtx-1080-ti",
    "nvidia-gtx-480",
    "amd-instinct-mi210",
    "amd-r9-290x",
    "amd-rx-6900-xt",
    "intel-hd-530",
    "xeon-16core-pocl",
    *(f"gpu-2010-today/{number}" for number in _OF_SPACE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One coordinate.

    Attributes:
        name: Its name.
        unit: Its unit in a program vector.
        meaning: What it is.
        cause: Of a timed resource; "" for a counted one.
        archetype: Of a timed resource; "" for a counted one.
    """

    name: str
    unit: str
    meaning: str
    cause: str = ""
    archetype: str = ""


def _ladder(prefix: str, unit: str, meaning: str) -> tuple[Resource, ...]:
    return tuple(
        Resource(name=f"{prefix}_{slots}", unit=unit, meaning=meaning.format(slots=slots)) for slots in SLOT_LADDER
    )


COUNTED: tuple[Resource, ...] = (
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
TIMED: tuple[Resource, ...] = tuple(
    Resource(
        name=f"time:{archetype}:{cause}",
        unit="s",
        meaning=f"time on {archetype} by the timing model, as far as the cause is {cause}",
        cause=cause,
        archetype=archetype,
    )
    for archetype in ARCHETYPES
    for cause in CAUSES
)
RESOURCES = (*COUNTED, *TIMED)
NUM_COUNTED = len(COUNTED)
NUM_RESOURCES = len(RESOURCES)
RESOURCE_INDEX = {resource.name: index for index, resource in enumerate(RESOURCES)}
