"""A kernel in machine code."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, final

import llvmlite.binding as llvm
import numpy as np

from perfvec.errors import UnsupportedError
from perfvec.program.classify import CLASS_INDEX, StaticTable, make_static_table, opcode_class
from perfvec.program.group_driver import DRIVER_IR
from perfvec.program.idle import idle_instructions
from perfvec.program.ir import vector_parts
from perfvec.program.native import NativeKernel, translate
from perfvec.program.registers import most_live_registers
from perfvec.trace_data import OPCODE_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALIGN = 128
CODE_LEVEL = 2  # of LLVM's code generator
_SYMBOL_TABLE = 2  # type of an ELF section


@final
class CompiledKernel:
    """A kernel in machine code, ready for any launch of it.

    Attributes:
        native: What it was made from.
        regs_bytes: Bytes of the values that are kept of a sub-group.
        args_bytes: Bytes of the arguments.
        arg_offsets: Where each argument lies.
        slot_offsets: Where each value that is kept lies.
        segments: Address of the table of the segments' functions.
        costs: Instructions of each segment.
        num_sites: Memory accesses of each segment.
        tried_ns: Estimated time of the work-groups of all launches that were tried out, in nanoseconds; kept by
            `perfvec.program.pilot`.

    Raises:
        UnsupportedError: LLVM refuses the translation, or the code needs helpers that this process lacks.
    """

    def __init__(self, native: NativeKernel) -> None:
        self.native = native
        self._engine = _engine(native.ir, f"kernel {native.kernel.name!r}")
        self.segments = self._engine.get_global_value_address("pv.segments")
        num_args = len(native.kernel.parameters)
        layout = struct.iter_unpack("<q", self.table("pv.layout", 8 * (2 + num_args + len(native.slots))))
        regs_bytes, args_bytes, *offsets = (number for (number,) in layout)
        self.regs_bytes = -(-regs_bytes // _ALIGN) * _ALIGN
        self.args_bytes = max(8, args_bytes)
        self.arg_offsets = offsets[:num_args]
        self.slot_offsets = dict(zip(native.slots, offsets[num_args:], strict=True))
        self.costs = np.array([max(1, len(s.body) + (s.terminator is not None)) for s in native.segments], np.int32)
        self.tried_ns = 0.0
        self.num_sites = np.bincount([s.segment for s in native.sites], minlength=len(native.segments)).astype(np.int32)

    @cached_property
    def static(self) -> StaticTable:
        """The kernel's static table; all its launches share it, so its arrays cannot be written."""
        table = make_static_table(self.native)
        table.rows.setflags(write=False)
        return table

    @cached_property
    def live_registers(self) -> int:
        """See `perfvec.program.registers.most_live_registers`."""
        return most_live_registers(self.native.kernel)

    @cached_property
    def idle(self) -> frozenset[int]:
        """See `perfvec.program.idle.idle_instructions`."""
        return idle_instructions(self.native)

    @cached_property
    def idle_scalars(self) -> NDArray[np.int64]:
        """Scalars that a lane's idle instructions compute; shape `(segments, len(OPCODE_CLASSES))`."""
        scalars = np.zeros((len(self.native.segments), len(OPCODE_CLASSES)), np.int64)
        for segment in self.native.segments:
            for instruction in segment.body:
                name = opcode_class(instruction) if id(instruction) in self.idle else ""
                if name:
                    scalars[segment.index, CLASS_INDEX[name]] += max(vector_parts(instruction.type)[0], 1)
        return scalars

    @property
    def has_trial(self) -> bool:
        """Whether `trial_segments` have been compiled."""
        return "trial_segments" in self.__dict__

    @cached_property
    def trial_segments(self) -> int:
        """As `segments`, of code without what is idle: for runs without a record, whose results nobody reads."""
        if not self.idle:
            return self.segments
        ir = translate(self.native.kernel, idle=self.idle).ir
        self._trial_engine = _engine(ir, f"kernel {self.native.kernel.name!r}")
        return self._trial_engine.get_global_value_address("pv.segments")

    def table(self, symbol: str, num_bytes: int) -> bytes:
        """Contents of a table of constants."""
        return ctypes.string_at(self._engine.get_global_value_address(symbol), num_bytes)


@cache
def _driver() -> llvm.ExecutionEngine:
    return _engine(DRIVER_IR, "the driver")


@cache
def run_groups() -> Callable[[int], int]:
    """The driver, which is the same for all kernels: from the address of a context to a `Status`."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(_driver().get_function_address("pv.run_groups"))


def _engine(ir: str, what: str) -> llvm.ExecutionEngine:
    """Compile a module for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        module = llvm.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise UnsupportedError(
            f"{what} has instructions that the executor translates wrongly; please report it: {error}"
        ) from error
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=CODE_LEVEL, jit=True
    )
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    _optimise(module, machine)
    engine = llvm.create_mcjit_compiler(module, machine)
    missing: set[str] = set()
    engine.set_object_cache(lambda _module, code: missing.update(_missing_symbols(code)))
    engine.finalize_object()
    if missing:
        raise UnsupportedError(
            f"{what} computes with numbers that this machine has no instructions for; it would need "
            f"{', '.join(sorted(missing))}"
        )
    return engine


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """A few passes: LLVM's standard ones take thrice the time and make the code no faster than 10 %."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))


def _missing_symbols(code: bytes) -> set[str]:
    """Functions that an object file expects from its process in vain; LLVM would let it jump to address 0.

    Only ELF files are read: 64 bits, little-endian.
    """
    if code[:4] != b"\x7fELF":
        return set()
    (sections_at,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, sections_at + size * i) for i in range(count)]
    table = next(section for section in sections if section[1] == _SYMBOL_TABLE)
    names_at = sections[table[6]][4]
    names = set()
    for at in range(table[4], table[4] + table[5], 24):
        name, _, _, section = struct.unpack_from("<IBBH", code, at)
        if name and not section:
            names.add(code[names_at + name : code.index(b"\0", names_at + name)].decode())
    return {name for name in names if not llvm.address_of_symbol(name)}
