"""A kernel in machine code."""

from __future__ import annotations

import ctypes
import struct
from typing import final

import llvmlite.binding as llvm

from perfvec.errors import UnsupportedError
from perfvec.program.native import NativeKernel

_ALIGN = 128
CODE_LEVEL = 2  # of LLVM's code generator
_SYMBOL_TABLE = 2  # type of an ELF section


@final
class CompiledKernel:
    """A kernel in machine code, ready for any launch of it.

    Raises:
        UnsupportedError: LLVM refuses the translation, or the code needs helpers that this process lacks.
    """

    def __init__(self, native: NativeKernel) -> None:
        self.native = native
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        try:
            module = llvm.parse_assembly(native.ir)
            module.verify()
        except RuntimeError as error:
            raise UnsupportedError(
                f"kernel {native.kernel.name!r} has instructions that the executor translates wrongly; please report "
                f"it: {error}"
            ) from error
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=CODE_LEVEL, jit=True
        )
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        _optimise(module, machine)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        missing: set[str] = set()
        self._engine.set_object_cache(lambda _module, code: missing.update(_missing_symbols(code)))
        self._engine.finalize_object()
        if missing:
            raise UnsupportedError(
                f"kernel {native.kernel.name!r} computes with numbers that this machine has no instructions for; it "
                f"would need {', '.join(sorted(missing))}"
            )
        self.run_groups = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self._address("pv.run_groups"))
        self.regs_bytes = -(-self._number("pv.regs_bytes") // _ALIGN) * _ALIGN
        self.args_bytes = max(8, self._number("pv.args_bytes"))
        slots = self.table("pv.slots", 8 * len(native.slots))
        self.slot_offsets = dict(zip(native.slots, struct.unpack(f"<{len(native.slots)}q", slots), strict=True))
        self.sites_address = self._engine.get_global_value_address("pv.sites")
        self.arg_offsets = [self._number(f"pv.arg_offset.{i}") for i in range(len(native.kernel.parameters))]

    def _address(self, symbol: str) -> int:
        return self._engine.get_function_address(symbol)

    def _number(self, symbol: str) -> int:
        return ctypes.CFUNCTYPE(ctypes.c_int64)(self._address(symbol))()

    def table(self, symbol: str, num_bytes: int) -> bytes:
        """Contents of a table of constants."""
        return ctypes.string_at(self._engine.get_global_value_address(symbol), num_bytes)


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
