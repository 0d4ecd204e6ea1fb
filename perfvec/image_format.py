"""Image formats of OpenCL 1.2: how the channels of a texel lie in memory.

A format is written as channel order and channel type in OpenCL's words, such as `rgba_unorm_int8` or `r_float`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from perfvec.errors import LaunchError

# Which channels of (red, green, blue, alpha) a texel has, in the order in which they lie in memory. What it has not
# reads as 0, alpha as 1; intensity is all four channels, luminance the three colours. The values are OpenCL's.
CHANNEL_ORDERS: dict[str, tuple[int, str]] = {
    "r": (0x10B0, "r"),
    "a": (0x10B1, "a"),
    "rg": (0x10B2, "rg"),
    "ra": (0x10B3, "ra"),
    "rgb": (0x10B4, "rgb"),
    "rgba": (0x10B5, "rgba"),
    "bgra": (0x10B6, "bgra"),
    "argb": (0x10B7, "argb"),
    "intensity": (0x10B8, "i"),
    "luminance": (0x10B9, "l"),
}
# By channel type: OpenCL's value and the NumPy type of a channel, or of a texel whose channels are packed into one.
CHANNEL_TYPES: dict[str, tuple[int, str]] = {
    "snorm_int8": (0x10D0, "int8"),
    "snorm_int16": (0x10D1, "int16"),
    "unorm_int8": (0x10D2, "uint8"),
    "unorm_int16": (0x10D3, "uint16"),
    "unorm_short_565": (0x10D4, "uint16"),
    "unorm_short_555": (0x10D5, "uint16"),
    "unorm_int_101010": (0x10D6, "uint32"),
    "signed_int8": (0x10D7, "int8"),
    "signed_int16": (0x10D8, "int16"),
    "signed_int32": (0x10D9, "int32"),
    "unsigned_int8": (0x10DA, "uint8"),
    "unsigned_int16": (0x10DB, "uint16"),
    "unsigned_int32": (0x10DC, "uint32"),
    "half_float": (0x10DD, "float16"),
    "float": (0x10DE, "float32"),
}
# Width in bits of the packed channels, red first, from the highest bit that is used.
PACKED_BITS: dict[str, tuple[int, int, int]] = {
    "unorm_short_565": (5, 6, 5),
    "unorm_short_555": (5, 5, 5),
    "unorm_int_101010": (10, 10, 10),
}
# Border texels of these orders are opaque.
_OPAQUE_BORDERS = ("r", "rg", "rgb", "luminance")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFormat:
    """Channel order and channel type of an image, keys of `CHANNEL_ORDERS` and `CHANNEL_TYPES`."""

    order: str
    channel_type: str

    def __post_init__(self) -> None:
        if self.order not in CHANNEL_ORDERS or self.channel_type not in CHANNEL_TYPES:
            raise LaunchError(
                f"unknown image format {str(self)!r}; write a channel order ({', '.join(CHANNEL_ORDERS)}), an "
                f"underscore and a channel type ({', '.join(CHANNEL_TYPES)})"
            )
        if (self.order == "rgb") != self.is_packed:
            raise LaunchError(
                f"image format {str(self)!r}: channel order rgb goes with {', '.join(PACKED_BITS)} and they with it"
            )

    @property
    def is_packed(self) -> bool:
        """Whether the channels of a texel share one integer."""
        return self.channel_type in PACKED_BITS

    @property
    def is_normalised(self) -> bool:
        """Whether integers stand for numbers from 0 or -1 to 1."""
        return "norm" in self.channel_type

    @property
    def channels(self) -> str:
        """The channels in memory, a letter each."""
        return CHANNEL_ORDERS[self.order][1]

    @property
    def scalar(self) -> str:
        """NumPy type of what a texel is made of in memory."""
        return CHANNEL_TYPES[self.channel_type][1]

    @property
    def num_scalars(self) -> int:
        """How many of them a texel has: 1, 2 or 4."""
        return 1 if self.is_packed else len(self.channels)

    @property
    def is_border_opaque(self) -> bool:
        """Whether the texels outside have an alpha of 1."""
        return self.order in _OPAQUE_BORDERS

    @property
    def opencl_order(self) -> int:
        """OpenCL's value of the channel order."""
        return CHANNEL_ORDERS[self.order][0]

    @property
    def opencl_type(self) -> int:
        """OpenCL's value of the channel type."""
        return CHANNEL_TYPES[self.channel_type][0]

    def __str__(self) -> str:
        return f"{self.order}_{self.channel_type}"

    @classmethod
    def parse(cls, text: str) -> ImageFormat:
        """Read `rgba_unorm_int8`.

        Raises:
            LaunchError: There is no such format.
        """
        order, _, channel_type = text.strip().partition("_")
        return cls(order=order, channel_type=channel_type)
