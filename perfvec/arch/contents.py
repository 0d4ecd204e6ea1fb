"""Contents of buffers, made once for the many launches that hold the same."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, final

from perfvec.arch.replay import HostBuffer, host_buffer
from perfvec.arguments import BufferArg, ImageArg
from perfvec.initialisers import PERIODIC

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfvec.launch import Launch

# Initialisers that draw one scalar after the other: what they make for a small buffer is the beginning of what they
# make for a large one.
_DRAWN_IN_ORDER = tuple(name for name in PERIODIC if name != "constant")


@final
class ContentCache:
    """Blocks of contents, the least recently used dropped first."""

    def __init__(self, most_bytes: int) -> None:
        """Start empty.

        Args:
            most_bytes: What the blocks may take together; a single one may take more.
        """
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._blocks: OrderedDict[str, NDArray[np.generic]] = OrderedDict()

    def contents(self, launch: Launch) -> dict[int, HostBuffer]:
        """Contents of all buffers and images of a launch, by the argument's position; blocks are shared, not copied."""
        return {
            place: self._contents(arg) for place, arg in enumerate(launch.args) if isinstance(arg, BufferArg | ImageArg)
        }

    def _contents(self, arg: BufferArg | ImageArg) -> HostBuffer:
        if isinstance(arg, ImageArg) or arg.data is not None or arg.initialiser.name == "constant":
            return host_buffer(arg)
        period = arg.one_period()
        count = period.count * arg.element.num_lanes_stored
        is_drawn = arg.initialiser.name in _DRAWN_IN_ORDER
        key = f"{arg.element.scalar}:{arg.initialiser}~{arg.seed}" + ("" if is_drawn else f":{count}")
        block = self._blocks.get(key)
        if block is None or block.size < count:
            block = self._keep(key, period.array())
        self._blocks.move_to_end(key)
        return HostBuffer(block=block[:count], num_bytes=arg.num_bytes, key=key)

    def _keep(self, key: str, block: NDArray[np.generic]) -> NDArray[np.generic]:
        old = self._blocks.pop(key, None)
        self._num_bytes += block.nbytes - (0 if old is None else old.nbytes)
        self._blocks[key] = block
        while self._num_bytes > self._most_bytes and len(self._blocks) > 1:
            self._num_bytes -= self._blocks.popitem(last=False)[1].nbytes
        return block
