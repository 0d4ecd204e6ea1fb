"""How many registers a work-item needs: the most values alive at once, by data-flow analysis of the kernel's IR."""

from __future__ import annotations

from perfvec.errors import UnsupportedError
from perfvec.program.accesses import TypeSizes
from perfvec.program.ir import KernelIR, phi_values, pointer_space

REGISTER_BYTES = 4


def most_live_registers(kernel: KernelIR) -> int:
    """The most 32-bit registers that hold values of a work-item at one time.

    Kernel parameters are left out, because devices keep them in constant memory, and so are conditions, which have
    registers of their own.

    Args:
        kernel: The optimised kernel.

    Source:
        Live variable analysis: Aho, Lam, Sethi, Ullman, "Compilers", 2nd edition, section 9.2.5; phis are read at the
        end of the blocks that they come from.
    """
    sizes = TypeSizes(kernel.types)
    weight = {
        i.name: _registers(i.type, sizes)
        for b in kernel.blocks
        for i in b.instructions
        if i.name and i.opcode != "alloca"
    }
    live_in: dict[str, frozenset[str]] = {b.label: frozenset() for b in kernel.blocks}
    phi_reads: dict[str, set[str]] = {b.label: set() for b in kernel.blocks}
    for block in kernel.blocks:
        for instruction in block.instructions:
            if instruction.opcode == "phi":
                for label, value in phi_values(instruction).items():
                    if value in weight:
                        phi_reads[label].add(value)
    most = 0
    changed = True
    while changed:
        changed = False
        for block in reversed(kernel.blocks):
            live = set(phi_reads[block.label])
            for target in block.instructions[-1].targets:
                live |= live_in[target]
            peak = sum(weight[name] for name in live)
            current = peak
            for instruction in reversed(block.instructions):
                if instruction.name in live:
                    live.discard(instruction.name)
                    current -= weight[instruction.name]
                if instruction.opcode == "phi":
                    continue
                for name in instruction.operands:
                    if name in weight and name not in live:
                        live.add(name)
                        current += weight[name]
                peak = max(peak, current)
            most = max(most, peak)
            if (frozen := frozenset(live)) != live_in[block.label]:
                live_in[block.label] = frozen
                changed = True
    return most


def _registers(type_text: str, sizes: TypeSizes) -> int:
    if type_text.endswith("i1") or type_text == "void":
        return 0
    if pointer_space(type_text) == 3:
        return 1
    try:
        return -(-sizes.stored_bytes(type_text) // REGISTER_BYTES)
    except UnsupportedError:
        return 1
