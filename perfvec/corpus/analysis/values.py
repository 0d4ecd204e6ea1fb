"""What a kernel's values are, as polynomials: one pass over its instructions in the canonical form.

Kinds of atoms that are made here, with their keys:
    id(function, dimension)             global_id, local_id and so on: the functions of work-items without `get_`
    scalar(argument, component)         a scalar argument, a lane of a vector (0, 1 ...) or a byte of a struct
    image(argument, axis)               size of an image
    phi(name, lane)                     a value that a loop carries
    merge(name, lane, *values)          one of several values, by the way that was taken
    select(name, lane, value, other)    one of two values, by a condition
    load(name, lane, *offsets)          a value that was loaded
    atomic(name, *offsets)              what an atomic function found
    unknown(name, lane, bits)           anything else
    div, rem, min, max, and, or, pow2, lshr, floor, quotient, bounded: operations on the polynomials in the key
Integers do not wrap here; signs and widths are not told apart, as they do not matter to an index that is in bounds.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias, final

from perfvec.corpus.analysis.conditions import OPAQUE, Condition
from perfvec.corpus.analysis.control_flow import ControlFlow
from perfvec.corpus.analysis.memory import (
    ARGUMENT,
    LOCAL,
    NOWHERE,
    PRIVATE,
    TABLE,
    VALUE,
    MemoryObject,
    Pointer,
    table_range,
)
from perfvec.corpus.analysis.operations import ARITHMETIC, FUNCTIONS, floor, mask_bits, operation, unsigned
from perfvec.corpus.analysis.polynomial import ONE, ZERO, Atom, Polynomial, constant, polynomial_of
from perfvec.errors import UnsupportedError
from perfvec.program.accesses import LOCAL as LOCAL_SPACE
from perfvec.program.accesses import TypeSizes, atomic_parts, vector_access_parts
from perfvec.program.builtins.demangle import demangle
from perfvec.program.ir import (
    Instruction,
    KernelIR,
    call_arguments,
    phi_values,
    pointer_space,
    read_type,
    split_top,
    vector_parts,
)

Lanes: TypeAlias = tuple[Polynomial, ...]
Value: TypeAlias = Lanes | Pointer | Condition

WORK_ITEM = {
    f"get_{name}": name
    for name in ("global_id", "local_id", "group_id", "global_size", "local_size", "num_groups", "global_offset")
}
_IMAGE_SIZES = {"get_image_width": 0, "get_image_height": 1, "get_image_depth": 2, "get_image_array_size": -1}
_FLAGS = re.compile(r"\b(?:nuw|nsw|exact|nneg|samesign|inbounds|nusw|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc) ")
_LITERAL = re.compile(r"-?\d+")
_CASTS = (
    "zext", "sext", "trunc", "bitcast", "addrspacecast", "fptosi", "fptoui", "sitofp", "uitofp", "fpext", "fptrunc",
)  # fmt: skip
# Results within fixed bounds, whatever the argument.
_BOUNDED = dict.fromkeys(("sin", "cos", "native_sin", "native_cos", "half_sin", "half_cos", "tanh", "erf"), (-1, 1))


def number_of(text: str) -> Fraction | int | None:
    """Read a literal of LLVM IR; None where it is no finite number."""
    if _LITERAL.fullmatch(text):
        return int(text)
    if text in ("true", "false"):
        return int(text == "true")
    if re.fullmatch(r"0x[0-9A-Fa-f]{16}", text):
        value = struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    elif re.fullmatch(r"[-+]?\d+\.\d+(?:e[-+]?\d+)?", text):
        value = float(text)
    else:
        return None
    return Fraction(value).limit_denominator(1 << 24) if abs(value) < 1e18 else None


@final
class Values:
    """Values of a kernel by name, found block by block.

    Attributes:
        phis: For what a loop carries: header, value at first, value in the next iteration.
        merges: For merges and selects: each value and the conditions under which it is taken.
        loads: For loads and atomics: where from, and the LLVM type of the scalar.
    """

    def __init__(self, kernel: KernelIR, flow: ControlFlow) -> None:
        self.kernel, self.flow = kernel, flow
        self.sizes = TypeSizes(kernel.types)
        self.phis: dict[Atom, tuple[str, Polynomial, Polynomial]] = {}
        self.merges: dict[Atom, tuple[tuple[Polynomial, tuple[Condition, ...]], ...]] = {}
        self.loads: dict[Atom, tuple[Pointer, str]] = {}
        self.atomic_steps: dict[Atom, Polynomial] = {}
        self._known: dict[str, Value] = {}
        self._block = flow.entry
        self._open: list[tuple[Instruction, str, Lanes | Pointer]] = []
        self._name_parameters()
        self._name_variables()
        self._run()

    # ---- what is there before the first instruction -------------------------------------------------------------

    def _name_parameters(self) -> None:
        for index, parameter in enumerate(self.kernel.parameters):
            if parameter.byval:
                memory = MemoryObject(kind=VALUE, name=parameter.name[1:], index=index)
                self._known[parameter.name] = ((memory, ZERO),)
            elif pointer_space(parameter.type) >= 0:
                memory = MemoryObject(kind=ARGUMENT, name=parameter.name[1:], index=index)
                self._known[parameter.name] = ((memory, ZERO),)
            else:
                width, _ = vector_parts(parameter.type)
                self._known[parameter.name] = tuple(
                    polynomial_of(Atom("scalar", (index, lane))) for lane in range(width)
                )

    def _name_variables(self) -> None:
        for variable in self.kernel.variables:
            is_local = variable.address_space == LOCAL_SPACE
            lowest, highest = (0, 0) if is_local else table_range(variable)
            memory = MemoryObject(
                kind=LOCAL if is_local else TABLE,
                name=variable.name[1:].strip('"').split(".")[-1],
                num_bytes=self.sizes.bytes_of(variable.type),
                lowest=lowest,
                highest=highest,
            )
            self._known[variable.name] = ((memory, ZERO),)

    # ---- the pass -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        wanted = self._wanted()
        for label in self.flow.order:
            self._block = label
            for instruction in self.flow.blocks[label].instructions:
                if instruction.name and instruction.name in wanted:
                    self._known[instruction.name] = self._value(instruction)
        for phi, header, placeholder in self._open:
            self._close(phi, header, placeholder)

    def _wanted(self) -> set[str]:
        """Names of the values that reach an address, a condition or an integer in memory."""
        makers = {i.name: i for b in self.flow.blocks.values() for i in b.instructions if i.name}
        stack: list[str] = []
        for block in self.flow.blocks.values():
            for instruction in block.instructions:
                is_float = instruction.type.strip("<>").split()[-1] in ("float", "double", "half")
                if instruction.opcode == "store" and is_float:
                    stack += instruction.operands[-1:]
                elif instruction.opcode in ("load", "store", "br", "call"):
                    stack += instruction.operands
        wanted: set[str] = set()
        while stack:
            name = stack.pop()
            if name in makers and name not in wanted:
                wanted.add(name)
                stack += makers[name].operands
        return wanted | {i.name for i in makers.values() if i.opcode == "load"}

    def _value(self, instruction: Instruction) -> Value:
        try:
            value = self._make(instruction)
        except (UnsupportedError, ValueError, IndexError, KeyError, TypeError):
            value = None  # a form that is not known here: any value
        if value is None or (isinstance(value, tuple) and any(isinstance(v, Polynomial) and v.is_long for v in value)):
            return self.unknown(instruction)
        return value

    def unknown(self, instruction: Instruction) -> Value:
        """Any value of an instruction's type."""
        if pointer_space(instruction.type) >= 0:
            return ((NOWHERE, ZERO),)
        if instruction.type == "i1":
            return OPAQUE
        width, scalar = vector_parts(instruction.type)
        bits = int(scalar[1:]) if re.fullmatch(r"i\d+", scalar) else 0
        return tuple(polynomial_of(Atom("unknown", (instruction.name, lane, bits))) for lane in range(width))

    def _make(self, instruction: Instruction) -> Value | None:
        opcode = instruction.opcode
        rest = _FLAGS.sub("", instruction.text.partition(" ")[2])
        handler = _HANDLERS.get(opcode)
        return handler(self, instruction, rest) if handler is not None else None

    # ---- reading operands ---------------------------------------------------------------------------------------

    def lanes(self, type_text: str, text: str) -> Lanes:
        """A value as a polynomial for each lane."""
        width, scalar = vector_parts(type_text)
        if text in self._known:
            value = self._known[text]
            if isinstance(value, Condition):
                return (polynomial_of(Atom("bounded", (text, 0, 1))),)
            return value  # pyright: ignore[reportReturnType]
        if text in ("zeroinitializer", "undef", "poison"):
            return (ZERO,) * width
        if text.startswith("splat ("):
            return self.lanes(scalar, text[len("splat (") : -1].split()[-1]) * width
        if text.startswith("<"):
            return tuple(self.lanes(*_typed(part))[0] for part in split_top(text[1:-1]))
        number = number_of(text)
        if number is None:
            return tuple(polynomial_of(Atom("unknown", (text, lane, 0))) for lane in range(width))
        return (constant(number),) * width

    def pointer(self, text: str) -> Pointer:
        """Where a pointer may point."""
        value = self._known.get(text)
        if isinstance(value, tuple) and value and not isinstance(value[0], Polynomial):
            return value  # pyright: ignore[reportReturnType]
        if text.startswith("getelementptr"):
            inside = text[text.index("(") + 1 : -1]
            return self._offset(inside)
        return ((NOWHERE, ZERO),)

    def condition(self, text: str) -> Condition:
        """A condition by name; opaque where it is not about integers."""
        value = self._known.get(text)
        return value if isinstance(value, Condition) else OPAQUE

    def conditions_at(self, label: str) -> tuple[Condition, ...]:
        """What holds whenever a block runs."""
        return tuple(self.taken(e.condition, e.holds) for e in self.flow.conditions(label))

    def taken(self, name: str, holds: bool) -> Condition:
        """A condition that held, or did not."""
        condition = self.condition(name)
        return condition if holds else condition.negated()

    def conditions_on_edge(self, source: str, target: str) -> tuple[Condition, ...]:
        """What holds whenever control goes from one block to another."""
        edge = self.flow.edge(source, target)
        here = self.conditions_at(source)
        return here if edge is None else (*here, self.taken(edge.condition, edge.holds))

    # ---- loops --------------------------------------------------------------------------------------------------

    def _phi(self, instruction: Instruction, rest: str) -> Value | None:
        del rest
        incoming = phi_values(instruction)
        if instruction.type == "i1":
            return None
        is_pointer = pointer_space(instruction.type) >= 0
        if self._block in self.flow.loops:
            placeholder = self._placeholder(instruction, is_pointer)
            self._open.append((instruction, self._block, placeholder))
            return placeholder
        if is_pointer:
            targets = [target for text in incoming.values() for target in self.pointer(text)]
            return tuple(dict.fromkeys(targets))
        parts = [
            (self.lanes(instruction.type, v), self.conditions_on_edge(s, self._block)) for s, v in incoming.items()
        ]
        return self._either(instruction, "merge", parts)

    def _placeholder(self, instruction: Instruction, is_pointer: bool) -> Lanes | Pointer:
        if is_pointer:
            offset = polynomial_of(Atom("phi", (instruction.name, 0)))
            return tuple((memory, offset) for memory in self._memories(instruction.name, set()))
        width, _ = vector_parts(instruction.type)
        return tuple(polynomial_of(Atom("phi", (instruction.name, lane))) for lane in range(width))

    def _memories(self, name: str, seen: set[str]) -> tuple[MemoryObject, ...]:
        """The memories that a pointer may be into, from its text alone."""
        if name in self._known:
            return tuple(memory for memory, _ in self.pointer(name))
        if name in seen:
            return ()
        seen.add(name)
        maker = next(i for b in self.flow.blocks.values() for i in b.instructions if i.name == name)
        if maker.opcode not in ("phi", "select", "getelementptr"):
            return (NOWHERE,)
        spaces = [n for n in maker.operands if n in self._known or self._is_pointer(n)]
        found = [memory for operand in spaces for memory in self._memories(operand, seen)]
        return tuple(dict.fromkeys(m for m in found if m is not None))

    def _is_pointer(self, name: str) -> bool:
        return any(
            i.name == name and pointer_space(i.type) >= 0 for b in self.flow.blocks.values() for i in b.instructions
        )

    def _close(self, phi: Instruction, header: str, placeholder: Lanes | Pointer) -> None:
        loop = self.flow.loops[header]
        is_pointer = pointer_space(phi.type) >= 0
        first: list[Lanes] = []
        following: list[Lanes] = []
        for source, text in phi_values(phi).items():
            lanes = tuple(offset for _, offset in self.pointer(text)) if is_pointer else self.lanes(phi.type, text)
            (following if source in loop.blocks else first).append(lanes)
        atoms = [next(iter(v[1].atoms if isinstance(v, tuple) else v.atoms)) for v in placeholder]
        for lane, atom in enumerate(dict.fromkeys(atoms)):
            if len(first) == len(following) == 1 and lane < min(len(first[0]), len(following[0])):
                self.phis[atom] = header, first[0][lane], following[0][lane]

    def _either(
        self, instruction: Instruction, kind: str, parts: Sequence[tuple[Lanes, tuple[Condition, ...]]]
    ) -> Lanes:
        result = []
        for lane in range(len(parts[0][0])):
            values = [(lanes[lane], conditions) for lanes, conditions in parts]
            if len({value for value, _ in values}) == 1:
                result.append(values[0][0])
                continue
            atom = Atom(kind, (instruction.name, lane, *(value for value, _ in values)))
            self.merges[atom] = tuple(values)
            result.append(polynomial_of(atom))
        return tuple(result)

    # ---- instructions -------------------------------------------------------------------------------------------

    def _select(self, instruction: Instruction, rest: str) -> Value | None:
        (_, name), (type_text, yes), (_, no) = (_typed(part) for part in split_top(rest))
        if instruction.type == "i1":
            condition, yes_, no_ = self.condition(name), self._as_condition(yes), self._as_condition(no)
            if no == "false":
                return Condition(kind="all", parts=(condition, yes_), line=instruction.line)
            if yes == "true":
                return Condition(kind="any", parts=(condition, no_), line=instruction.line)
            return None
        if pointer_space(instruction.type) >= 0:
            return tuple(dict.fromkeys((*self.pointer(yes), *self.pointer(no))))
        condition = self.condition(name)
        here = self.conditions_at(self._block)
        parts = [
            (self.lanes(type_text, yes), (*here, condition)),
            (self.lanes(type_text, no), (*here, condition.negated())),
        ]
        return self._either(instruction, "select", parts)

    def _as_condition(self, text: str) -> Condition:
        if text in ("true", "false"):
            return Condition(kind="all" if text == "true" else "any")
        return self.condition(text)

    def _compare(self, instruction: Instruction, rest: str) -> Value | None:
        predicate, _, operands = rest.partition(" ")
        left, right = split_top(operands)
        type_text, left = _typed(left)
        if instruction.type != "i1" or pointer_space(type_text) >= 0:
            return None
        a, b = self.lanes(type_text, left)[0], self.lanes(type_text, right)[0]
        if predicate.startswith("u"):
            a, b = (unsigned(value, type_text) for value in (a, b))
        return Condition(kind="compare", predicate=predicate, left=a, right=b, line=instruction.line)

    def _logic(self, instruction: Instruction, rest: str) -> Value | None:
        """Logic on conditions, and on the bits of numbers."""
        is_disjoint = rest.startswith("disjoint ")
        type_text, left, right = self._pair(rest.removeprefix("disjoint "))
        opcode = instruction.opcode
        if type_text == "i1":
            parts = self._as_condition(left), self._as_condition(right)
            if opcode == "xor":
                return parts[0].negated() if right == "true" else None
            return Condition(kind="all" if opcode == "and" else "any", parts=parts, line=instruction.line)
        pairs = zip(self.lanes(type_text, left), self.lanes(type_text, right), strict=True)
        if opcode == "or" and is_disjoint:
            return tuple(a + b for a, b in pairs)
        bits = int(vector_parts(type_text)[1][1:])
        return tuple(mask_bits(a, b, bits) if opcode == "and" else operation("or")(a, b) for a, b in pairs)

    def _arithmetic(self, instruction: Instruction, rest: str) -> Value | None:
        type_text, left, right = self._pair(rest)
        combine = ARITHMETIC[instruction.opcode]
        scalar = vector_parts(type_text)[1]
        bits = int(scalar[1:]) if scalar.startswith("i") else 0
        pairs = zip(self.lanes(type_text, left), self.lanes(type_text, right), strict=True)
        return tuple(combine(a, b, bits) for a, b in pairs)

    def _pair(self, rest: str) -> tuple[str, str, str]:
        left, right = split_top(rest)
        type_text, left = _typed(left)
        return type_text, left, right

    def _cast(self, instruction: Instruction, rest: str) -> Value | None:
        source, _, target = rest.rpartition(" to ")
        type_text, text = _typed(source)
        opcode = instruction.opcode
        if pointer_space(instruction.type) >= 0:
            return self.pointer(text) if opcode in ("bitcast", "addrspacecast") else None
        if instruction.type == "i1" or pointer_space(type_text) >= 0:
            return None
        if type_text == "i1":
            low = -1 if opcode == "sext" else 0
            return (polynomial_of(Atom("bounded", (instruction.name, low, low + 1))),)
        values = self.lanes(type_text, text)
        if opcode in ("fptosi", "fptoui"):
            return tuple(floor(value) for value in values)
        if opcode == "bitcast" and vector_parts(type_text)[1] != vector_parts(target)[1]:
            return self._reinterpreted(values, type_text, target)
        bits = int(vector_parts(target)[1][1:]) if opcode == "trunc" else 64
        if bits < 32:
            return tuple(operation("rem")(value, constant(1 << bits)) for value in values)
        return values

    def _reinterpreted(self, values: Lanes, source: str, target: str) -> Lanes | None:
        """What was loaded as one type and is used as another of that size: its data are of the other type."""
        atoms = [next(iter(value.atoms), None) for value in values]
        if vector_parts(source)[0] != vector_parts(target)[0] or not all(atom in self.loads for atom in atoms):
            return None
        for atom in atoms:
            if atom is not None and vector_parts(target)[1].startswith("i"):
                self.loads[atom] = self.loads[atom][0], vector_parts(target)[1]
        return values

    def _getelementptr(self, instruction: Instruction, rest: str) -> Value | None:
        del instruction
        return self._offset(rest)

    def _offset(self, rest: str) -> Pointer:
        """Where `getelementptr` points, from its operands."""
        type_text, base, *indices = split_top(_FLAGS.sub("", rest))
        offset = ZERO
        for number, part in enumerate(indices):
            index_type, text = _typed(part)
            value = self.lanes(index_type, text)[0]
            if number == 0:
                offset = offset + value.times(self.sizes.bytes_of(type_text))
                continue
            type_text = self.kernel.types.get(type_text, type_text)
            if type_text.startswith(("{", "<{")):
                position, type_text = self._member(type_text, int(text))
                offset = offset + constant(position)
            else:
                match = re.fullmatch(r"[\[<]\d+ x (.+)[\]>]", type_text)
                assert match is not None
                type_text = match[1]
                offset = offset + value.times(self.sizes.bytes_of(type_text))
        return tuple((memory, start + offset) for memory, start in self.pointer(_typed(base)[1]))

    def _member(self, type_text: str, number: int) -> tuple[int, str]:
        """Offset and type of a struct's member."""
        members = split_top(type_text.strip("<>")[1:-1])
        is_packed = type_text.startswith("<")
        position = 0
        for at, member in enumerate(members):
            align = 1 if is_packed else self.sizes.align_of(member)
            position = -(-position // align) * align
            if at == number:
                break
            position += self.sizes.bytes_of(member)
        return position, members[number]

    def _alloca(self, instruction: Instruction, rest: str) -> Value | None:
        type_text = split_top(rest)[0]
        name = instruction.name[1:].removesuffix(".addr")
        return ((MemoryObject(kind=PRIVATE, name=name, num_bytes=self.sizes.bytes_of(type_text)), ZERO),)

    def _load(self, instruction: Instruction, rest: str) -> Value | None:
        if pointer_space(instruction.type) >= 0:
            return None
        text = split_top(re.sub(r"^(atomic |volatile )*", "", rest))[1]
        return self._loaded(instruction, self.pointer(_typed(text)[1]))

    def _loaded(self, instruction: Instruction, pointer: Pointer) -> Lanes | None:
        width, scalar = vector_parts(instruction.type)
        memory, offset = pointer[0]
        if memory.kind == VALUE and len(pointer) == 1 and offset.is_constant:
            step = self.sizes.stored_bytes(scalar)
            first = int(offset.constant)
            return tuple(polynomial_of(Atom("scalar", (memory.index, first + step * lane))) for lane in range(width))
        offsets = tuple(place for _, place in pointer)
        atoms = [Atom("load", (instruction.name, lane, *offsets)) for lane in range(width)]
        for atom in atoms:
            self.loads[atom] = pointer, scalar
        return tuple(polynomial_of(atom) for atom in atoms)

    def _extract(self, instruction: Instruction, rest: str) -> Value | None:
        del instruction
        vector, index = split_top(rest)
        lanes = self.lanes(*_typed(vector))
        return (lanes[int(_typed(index)[1])],)

    def _insert(self, instruction: Instruction, rest: str) -> Value | None:
        del instruction
        vector, element, index = split_top(rest)
        lanes = list(self.lanes(*_typed(vector)))
        lanes[int(_typed(index)[1])] = self.lanes(*_typed(element))[0]
        return tuple(lanes)

    def _shuffle(self, instruction: Instruction, rest: str) -> Value | None:
        del instruction
        first, second, mask = split_top(rest)
        lanes = (*self.lanes(*_typed(first)), *self.lanes(*_typed(second)))
        places = self.lanes(*_typed(mask))
        return tuple(lanes[int(place.constant)] for place in places)

    def _negate(self, instruction: Instruction, rest: str) -> Value | None:
        del instruction
        return tuple(value.times(-1) for value in self.lanes(*_typed(rest)))

    def _freeze(self, instruction: Instruction, rest: str) -> Value | None:
        del instruction
        text = _typed(rest)[1]
        return self._known.get(text)

    def _call(self, instruction: Instruction, rest: str) -> Value | None:
        del rest
        arguments = call_arguments(instruction)
        callee = instruction.callee
        if callee.startswith("llvm."):
            return self._function(instruction, callee.split(".")[1], arguments)
        if atomic_parts(callee) is not None:
            pointer = self.pointer(arguments[0][1])
            atom = Atom("atomic", (instruction.name, *(offset for _, offset in pointer)))
            self.loads[atom] = pointer, instruction.type
            word, _ = atomic_parts(callee) or ("", "")
            steps = {"inc": ONE, "add": self.lanes(*arguments[1])[0] if len(arguments) > 1 else ONE}
            if word in steps:
                self.atomic_steps[atom] = steps[word]
            return (polynomial_of(atom),)
        parts = vector_access_parts(callee)
        if parts is not None and not parts.is_store:
            return self._vector_load(instruction, arguments)
        return self._function(instruction, demangle(callee).base, arguments)

    def _vector_load(self, instruction: Instruction, arguments: list[tuple[str, str]]) -> Lanes | None:
        step = self.sizes.stored_bytes(instruction.type)
        index = self.lanes(*arguments[0])[0]
        pointer = tuple((memory, start + index.times(step)) for memory, start in self.pointer(arguments[1][1]))
        return self._loaded(instruction, pointer)

    def _function(self, instruction: Instruction, name: str, arguments: list[tuple[str, str]]) -> Value | None:
        if name in WORK_ITEM:
            dimension = arguments[0][1]
            return (polynomial_of(Atom("id", (WORK_ITEM[name], int(dimension)))),) if dimension.isdigit() else None
        if name == "get_work_dim":
            return (polynomial_of(Atom("id", ("work_dim", 0))),)
        if name in _IMAGE_SIZES or name == "get_image_dim":
            index = self.pointer(arguments[0][1])[0][0].index
            axes = range(2) if name == "get_image_dim" else (_IMAGE_SIZES[name],)
            return tuple(polynomial_of(Atom("image", (index, axis))) for axis in axes)
        if name in _BOUNDED:
            return (polynomial_of(Atom("bounded", (instruction.name, *_BOUNDED[name]))),)
        operands = [self.lanes(*argument) for argument in arguments]
        function = FUNCTIONS.get(name)
        if name.startswith("convert_"):
            is_integer = re.fullmatch(r"i\d+", vector_parts(instruction.type)[1]) is not None
            function = floor if is_integer else (lambda value: value)
        if function is None:
            return None
        width = max(map(len, operands))
        wide = [lanes * width if len(lanes) == 1 else lanes for lanes in operands]
        return tuple(function(*values) for values in zip(*wide, strict=True))


def _typed(text: str) -> tuple[str, str]:
    """Type and value of an operand."""
    type_text, position = read_type(text)
    return type_text, text[position:].strip()


_HANDLERS: dict[str, Callable[[Values, Instruction, str], Value | None]] = {
    "phi": Values._phi,
    "select": Values._select,
    "icmp": Values._compare,
    **dict.fromkeys(("and", "or", "xor"), Values._logic),
    **dict.fromkeys(ARITHMETIC, Values._arithmetic),
    **dict.fromkeys(_CASTS, Values._cast),
    "getelementptr": Values._getelementptr,
    "alloca": Values._alloca,
    "load": Values._load,
    "extractelement": Values._extract,
    "insertelement": Values._insert,
    "shufflevector": Values._shuffle,
    "fneg": Values._negate,
    "freeze": Values._freeze,
    "call": Values._call,
}
