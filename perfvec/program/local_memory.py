"""Reads of local memory that nothing has written: on a device they give whatever was there before.

The executor clears local memory, so such a kernel gives the same result each time here. One work-group is followed; a
device may show other values in each.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.accesses import LOCAL, atomic_parts
from perfvec.program.core.local_memory import ENDED, FOUND, NOTHING, find_unwritten
from perfvec.program.driver import MARK_GROUP_END, MAX_MEMORIES, TAG_SHIFT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from perfvec.program.memories import BoundMemory
    from perfvec.program.native import NativeKernel, Site

logger = logging.getLogger(__name__)
_ADVICE = "its value is whatever a device has there. Write it first, by all work-items, and put a barrier between."
_VARIABLE = re.compile(r"^(@[\w$.]+) = .*\baddrspace\(3\) global ", re.MULTILINE)
_LINE = re.compile(r"^(!\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_NAME = re.compile(r"[%@][\w$.]+")


@final
class LocalReads:
    """Follows the first work-group of a record and warns once.

    Args:
        native: The kernel.
        memories: Where its memories are, as an execution has bound them.
        source_name: What to call the source in the warning.
    """

    def __init__(self, native: NativeKernel, memories: Mapping[int, BoundMemory], source_name: str) -> None:
        self._native, self._memories, self._source_name = native, memories, source_name
        self._sites = np.array([_site_row(site) for site in native.sites], np.int64).reshape(-1, 3)
        counts = np.bincount([site.segment for site in native.sites], minlength=len(native.segments))
        ends = np.cumsum(counts)
        self._segments = np.stack([ends - counts, ends], axis=1).astype(np.int64)
        self._base = np.full(MAX_MEMORIES, -1, np.int64)
        num_bytes = 0
        for memory in memories.values():
            if memory.space == "local":
                self._base[memory.number] = num_bytes
                num_bytes += memory.num_bytes
        self._written = np.zeros(num_bytes, np.bool_)
        self._found = np.zeros(3, np.int64)
        self._state = NOTHING if self._sites[:, 1].any() else ENDED

    def consume(self, events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        """Take in a piece of the record (the executor's `Consumer`)."""
        if self._state != NOTHING:
            return
        self._state = find_unwritten(
            events, addresses, self._segments, self._sites, self._base, self._written, MARK_GROUP_END, TAG_SHIFT,
            self._found,
        )  # fmt: skip
        if self._state == FOUND:
            self._warn()

    def _warn(self) -> None:
        site, address = self._native.sites[int(self._found[0])], int(self._found[1])
        memory = self._memories[address >> TAG_SHIFT]
        logger.warning(
            f"{self._source_name}:{site.instruction.line}: kernel {self._native.kernel.name!r} reads "
            f"{site.access.num_bytes} bytes at byte {address & ((1 << TAG_SHIFT) - 1)} of local {memory.name!r}, which "
            f"no work-item has written; {_ADVICE}"
        )


def _site_row(site: Site) -> tuple[int, bool, bool]:
    """Bytes that a lane moves, and whether it reads and writes local memory."""
    is_local, atomic = site.access.space == LOCAL, atomic_parts(site.instruction.callee)
    reads = not site.access.is_write or (atomic is not None and atomic[0] != "xchg")
    return site.access.num_bytes, is_local and reads, is_local and site.access.is_write


def warn_of_unwritten(text: str, source_name: str) -> None:
    """Warn of local variables that a program only reads: the optimiser leaves nothing of these to be seen later.

    Args:
        text: The module, before optimisation.
        source_name: What to call the source in warnings.
    """
    variables = _VARIABLE.findall(text)
    if not variables:
        return
    lines = [line for line in text.splitlines() if line.startswith(("  ", "}"))]
    source_lines = dict(_LINE.findall(text))
    for variable in variables:
        load = _first_load(lines, variable)
        if load:
            node = re.search(r"!dbg (!\d+)", load)
            line = source_lines.get(node[1], 0) if node else 0
            name = variable.rpartition(".")[2]
            logger.warning(
                f"{source_name}:{line}: local {name!r} is read, and nothing in the program writes it; {_ADVICE}"
            )


def _first_load(lines: list[str], variable: str) -> str:
    """The first load through a variable that is used for nothing but loads; "" if there is none."""
    derived, load = {variable}, ""
    for line in lines:
        if line == "}":  # names of values are a function's own
            derived = {variable}
        name, is_assigned, rest = line.strip().partition(" = ")
        if derived.isdisjoint(_NAME.findall(line)) or rest.startswith("icmp "):
            continue
        if is_assigned and rest.startswith(("getelementptr ", "bitcast ")):
            derived.add(name)
        elif is_assigned and rest.startswith("load "):
            load = load or line
        else:
            return ""  # stored to, or handed to something that may do so
    return load
