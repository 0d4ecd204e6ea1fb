"""Random choices that are the same on every machine and with every release of Python and NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, final

T = TypeVar("T")
_MASK = (1 << 64) - 1


@final
class Draw:
    """A stream of random choices; whole numbers only, so that no machine rounds otherwise.

    Source:
        Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: SplitMix64.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + ((self.bits() * (high - low + 1)) >> 64)

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.between(0, 99) < percent

    def choice(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.between(0, len(values) - 1)]

    def weighted(self, weights: Mapping[T, int]) -> T:
        """A key, as often as its weight says."""
        place = self.between(0, sum(weights.values()) - 1)
        for key, weight in weights.items():
            place -= weight
            if place < 0:
                return key
        raise AssertionError("weights add up to what they add up to")

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in a random order."""
        mixed = list(values)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.between(0, last)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed

    def power_of_two(self, low: int, high: int) -> int:
        """A power of two from `low` to `high`, which are such."""
        return 1 << self.between(low.bit_length() - 1, high.bit_length() - 1)

    def spread(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, about as often in each octave."""
        octave = self.between(low.bit_length() - 1, high.bit_length() - 1)
        return self.between(max(low, 1 << octave), min(high, (2 << octave) - 1))
