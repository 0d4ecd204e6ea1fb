"""What the writers of native code share: names, addresses, and the declarations that the code needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from perfvec.program.accesses import Access, TypeSizes
from perfvec.program.ir import GLOBAL_NAME, LOCAL_NAME
from perfvec.program.sub_groups import SubGroupCall

# Names of OpenCL C are identifiers, and those that LLVM derives from them begin with one: none begins like this.
OWN = "%.pv."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A memory access in native code: the real pointer, checked, and what is accessed."""

    pointer: str
    access: Access


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintfSite:
    """A call of printf in the kernel, and how its record is laid out.

    Attributes:
        line: Source line.
        types: LLVM types of the arguments after the format.
        offsets: Where the address of the format and each argument lie in the record.
        num_bytes: Bytes of the record.
    """

    line: int
    types: tuple[str, ...]
    offsets: tuple[int, ...]
    num_bytes: int


@final
class Writer:
    """Text of a kernel's native code in the making."""

    def __init__(
        self, kernel_name: str, sizes: TypeSizes, addresses: Mapping[str, str], literals: Mapping[int, bytes]
    ) -> None:
        self.kernel_name = kernel_name
        self.literals = literals  # string literals by address
        self.printf_sites: list[PrintfSite] = []
        self.sizes = sizes
        self.declarations: set[str] = set()
        self.builtins: set[str] = set()
        self.images: set[str] = set()
        self.sub_groups: dict[str, SubGroupCall] = {}  # by symbol
        self._addresses = addresses
        self._counter = 0

    def fresh(self, prefix: str) -> str:
        """A local name that nothing else has."""
        self._counter += 1
        return f"{OWN}{prefix}{self._counter}"

    def substitute(self, text: str) -> str:
        """Put addresses in the place of variables."""
        if "@" in text:
            text = GLOBAL_NAME.sub(lambda m: self._addresses.get(m[0], m[0]), text)
        return LOCAL_NAME.sub(lambda m: self._addresses.get(m[0], m[0]), text)
