"""Which coordinate of a vector is what.

    [ resources | launch gates × resources | excess | landmarks | token gates × token units | free token gates ]

The resources come first, in the order of `perfvec.resources`. Excess is how much longer a launch takes on one archetype
than on another (`perfvec.model.excess`), landmarks divide its typical time (`perfvec.model.landmarks`). A gated
coordinate is the same count, weighed between 0 and 1 by what the encoder sees, so it has the same unit and a device
charges for it in seconds per that unit. Free gates weigh the instruction itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ConfigError
from perfvec.model.excess import excess_pairs
from perfvec.model.launch_input import LITTLE_S
from perfvec.resources import ARCHETYPES, NUM_RESOURCES, RESOURCE_INDEX, RESOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.config import ModelConfig

INSTRUCTION = "instruction"
# What a unit costs that is not named like a resource: about as much as an instruction that does nothing special.
_DEFAULT_RESOURCE = "other_issue"
# The cause whose price prices an excess and a typical time: where caches and bandwidths tell devices apart.
_PRICING_CAUSE = "dram"
# The price of a landmark, which is no resource's: what the device charges for the typical time (`DeviceBank`).
TYPICAL_PRICE = NUM_RESOURCES
# By which unit a resource of the whole launch is shared among its instructions: the first that one of them uses.
_SHARED_BY = {
    "serial_atomics": ("atomic_passes",),
    "issue_per_slot": (INSTRUCTION,),
    "access_per_slot": ("global_accesses", "l1_sectors"),
    "launch": (),
    "work_groups": (),
}
# The same for time on an archetype, by its cause.
_CAUSE_SHARED_BY = {
    "issue": (INSTRUCTION,),
    "dependence": (INSTRUCTION,),
    "local": ("local_passes",),
    "l1": ("l1_sectors",),
    "l2": ("l2_sectors", "l1_sectors"),
    "dram": ("dram_sectors", "l2_sectors", "l1_sectors"),
    "atomics": ("atomic_passes",),
    "barrier": ("barriers",),
    "dispatch": (),
    "launch": (),
    "tail": (INSTRUCTION,),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLayout:
    """The coordinates of a program vector and of a device vector.

    Attributes:
        unit_names: Units of an instruction.
        launch_gates: Gates per resource.
        excess: Pairs of archetypes whose excess is a coordinate.
        landmarks: Landmarks.
        token_gates: Gates per unit of an instruction.
        free_gates: Gates of the instruction itself.
    """

    unit_names: tuple[str, ...]
    launch_gates: int
    excess: int
    landmarks: int
    token_gates: int
    free_gates: int

    @property
    def num_launch_coordinates(self) -> int:
        """Launch-gated coordinates."""
        return NUM_RESOURCES * self.launch_gates

    @property
    def num_token_coordinates(self) -> int:
        """Coordinates that an instruction adds to by itself."""
        return len(self.unit_names) * self.token_gates + self.free_gates

    @property
    def num_learned(self) -> int:
        """All coordinates that are no plain resources."""
        return self.num_launch_coordinates + self.excess + self.landmarks + self.num_token_coordinates

    @property
    def dim(self) -> int:
        """All coordinates."""
        return NUM_RESOURCES + self.num_learned

    @property
    def all_units(self) -> tuple[str, ...]:
        """The units, and last the instruction itself."""
        return (*self.unit_names, INSTRUCTION)

    @property
    def token_unit(self) -> NDArray[np.int64]:
        """Column of `all_units` that each token coordinate weighs; shape `(num_token_coordinates,)`."""
        gated = np.repeat(np.arange(len(self.unit_names)), self.token_gates)
        return np.concatenate([gated, np.full(self.free_gates, len(self.unit_names))]).astype(np.int64)

    @property
    def price(self) -> NDArray[np.int64]:
        """Resource whose seconds per unit price each learned coordinate, or `TYPICAL_PRICE`; shape `(num_learned,)`."""
        default = RESOURCE_INDEX[_DEFAULT_RESOURCE]
        of_unit = np.array([RESOURCE_INDEX.get(name, default) for name in self.all_units], dtype=np.int64)
        launch = np.repeat(np.arange(NUM_RESOURCES), self.launch_gates)
        slower = excess_pairs(self.excess).slower.tolist()
        excess = [RESOURCE_INDEX[f"time:{ARCHETYPES[place]}:{_PRICING_CAUSE}"] for place in slower]
        landmarks = [TYPICAL_PRICE] * self.landmarks
        return np.concatenate([launch, excess, landmarks, of_unit[self.token_unit]]).astype(np.int64)

    @property
    def typical_price(self) -> NDArray[np.float64]:
        """What of each resource's price a landmark costs; shape `(NUM_RESOURCES,)`.

        A typical time is in seconds on the first archetype, by the median launch, and a device's price of it the sum of
        its prices of all archetypes, each by the seconds that the median launch takes there.
        """
        scale_A = excess_pairs(0).scale
        share_K = np.zeros(NUM_RESOURCES)
        share_K[[RESOURCE_INDEX[f"time:{name}:{_PRICING_CAUSE}"] for name in ARCHETYPES]] = scale_A[0] / scale_A
        return share_K

    @property
    def little(self) -> NDArray[np.float64]:
        """What is little of each coordinate: one unit of a count, a nanosecond of a time; shape `(dim,)`."""
        of_resource = np.array([LITTLE_S if resource.unit == "s" else 1.0 for resource in RESOURCES])
        return np.concatenate([of_resource, np.append(of_resource, LITTLE_S)[self.price]])

    @property
    def sharing_units(self) -> NDArray[np.int64]:
        """Columns of `all_units` by which each resource is shared among instructions, the first that is used.

        Returns:
            `(candidates, NUM_RESOURCES)`; -1 where there is none left.
        """
        column = {name: index for index, name in enumerate(self.all_units)}
        most = max(map(len, (*_SHARED_BY.values(), *_CAUSE_SHARED_BY.values())))
        shared = np.full((most, NUM_RESOURCES), -1, dtype=np.int64)
        for index, resource in enumerate(RESOURCES):
            stem = resource.name.rstrip("0123456789").rstrip("_")
            candidates = _CAUSE_SHARED_BY[resource.cause] if resource.cause else _SHARED_BY.get(stem, (resource.name,))
            known = [column[name] for name in candidates if name in column]
            shared[: len(known), index] = known
        return shared

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate, such as `dram_sectors` or `launch:dram_sectors:3`; length `dim`."""
        plain = [resource.name for resource in RESOURCES]
        launch = [f"launch:{name}:{gate}" for name in plain for gate in range(self.launch_gates)]
        token = [f"token:{name}:{gate}" for name in self.unit_names for gate in range(self.token_gates)]
        free = [f"token:{INSTRUCTION}:{gate}" for gate in range(self.free_gates)]
        landmarks = [f"landmark:{number}" for number in range(self.landmarks)]
        return (*plain, *launch, *excess_pairs(self.excess).names, *landmarks, *token, *free)


def make_layout(config: ModelConfig, unit_names: tuple[str, ...]) -> VectorLayout:
    """Divide the coordinates that are no resources between launch gates and token gates.

    Args:
        config: Total number of coordinates and gates per unit. What is left gates the resources, as many times as
            fits; the rest are free.
        unit_names: Units of an instruction.

    Raises:
        ConfigError: The coordinates do not suffice.
    """
    left = config.dim - NUM_RESOURCES - config.excess - config.landmarks - len(unit_names) * config.token_gates
    if left < 0:
        raise ConfigError(
            f"dim={config.dim} cannot hold {NUM_RESOURCES} resources, excess={config.excess}, landmarks="
            f"{config.landmarks} and token_gates={config.token_gates} for each of {len(unit_names)} units; set dim to "
            f"{config.dim - left} or more, or the others lower"
        )
    return VectorLayout(
        unit_names=unit_names,
        launch_gates=left // NUM_RESOURCES,
        excess=config.excess,
        landmarks=config.landmarks,
        token_gates=config.token_gates,
        free_gates=left % NUM_RESOURCES,
    )
