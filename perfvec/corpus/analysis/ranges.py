"""Between which numbers a kernel's polynomials lie, once the NDRange, the scalars and the data are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, final

from perfvec.corpus.analysis.conditions import Condition, Guard, guards_of
from perfvec.corpus.analysis.intervals import (
    EVERYTHING,
    Bound,
    Box,
    Range,
    by_kind,
    divided,
    floored,
    highest,
    tighten,
    times,
)
from perfvec.corpus.analysis.memory import ARGUMENT, PRIVATE, TABLE, MemoryObject
from perfvec.corpus.analysis.memory import LOCAL as LOCAL_KIND
from perfvec.corpus.analysis.polynomial import Atom, Number, Polynomial, constant, polynomial_of
from perfvec.corpus.analysis.symbolic import Recurrence, SymbolicKernel

ScalarKey: TypeAlias = tuple[str, int, int]  # "scalar" or "image", argument, component

_ROUNDS = 3
_MOST_BOUNDS = 240  # polynomials that are tried for one bound
_DEPTH = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is chosen for a launch.

    Attributes:
        global_size: Work-items in each dimension.
        local_size: Work-items of a work-group.
        global_offset: First global id.
        scalars: Values of scalar arguments and sizes of images, as far as they are known.
        data: Least and greatest number in a buffer, by argument.
    """

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    global_offset: tuple[int, ...] = ()
    scalars: Mapping[ScalarKey, Number] = field(default_factory=dict)
    data: Mapping[int, Range] = field(default_factory=dict)

    def size(self, name: str, dimension: int) -> int:
        """A size of the NDRange by the name of the function that asks for it; that of a missing dimension is 1."""
        if name == "work_dim":
            return len(self.global_size)
        if name == "global_offset":
            return self.global_offset[dimension] if dimension < len(self.global_offset) else 0
        if dimension >= len(self.global_size):
            return 1
        whole, part = self.global_size[dimension], self.local_size[dimension]
        return {"global_size": whole, "local_size": part, "num_groups": whole // part}[name]


@final
class Ranges:
    """Bounds of a kernel's polynomials in one setting."""

    def __init__(self, kernel: SymbolicKernel, setting: Setting) -> None:
        self.kernel, self.setting = kernel, setting
        self._numeric: dict[Polynomial, Polynomial] = {}
        self._atoms: dict[Atom, Range] = {}
        self._at: dict[str, tuple[Guard, ...]] = {}
        self._pending: set[Atom] = set()
        self._left = 0

    # ---- polynomials with numbers in place of what is chosen ----------------------------------------------------

    def numeric(self, polynomial: Polynomial) -> Polynomial:
        """A polynomial with numbers for what is chosen, and iterations for what a loop counts."""
        if polynomial not in self._numeric:
            self._numeric[polynomial] = polynomial  # what refers to itself stays as it is
            values = {atom: self._replacement(atom) for atom in polynomial.atoms}
            self._numeric[polynomial] = self._in_global_ids(
                polynomial.replaced({atom: value for atom, value in values.items() if value is not None})
            )
        return self._numeric[polynomial]

    def _replacement(self, atom: Atom) -> Polynomial | None:
        if atom.kind == "id":
            name, dimension = str(atom.key[0]), int(str(atom.key[1]))
            if name in ("global_id", "local_id", "group_id"):
                ends = self._id_range(name, dimension)
                return constant(int(ends[0])) if ends[0] == ends[1] else None
            return constant(self.setting.size(name, dimension))
        if atom.kind in ("scalar", "image"):
            value = self.setting.scalars.get((atom.kind, *atom.key))  # pyright: ignore[reportArgumentType]
            return None if value is None else constant(value)
        if atom.kind == "phi":
            recurrence = self.kernel.recurrences.get(atom)
            if recurrence is None or recurrence.step is None:
                return None
            trip = polynomial_of(Atom("trip", (recurrence.header,)))
            return self.numeric(recurrence.first) + self.numeric(recurrence.step) * trip
        if atom.kind in _REBUILT:
            parts = tuple(self.numeric(part) for part in atom.polynomials)
            return self._rebuilt(atom, parts)
        return None

    def _rebuilt(self, atom: Atom, parts: tuple[Polynomial, ...]) -> Polynomial:
        """The atom of an operation, made simpler where its operands' ranges allow it."""
        if atom.kind == "pow2" and parts[0].is_constant and 0 <= parts[0].constant < 64:
            return constant(1 << int(parts[0].constant))
        if atom.kind == "lshr" and parts[1].is_constant and self.range(parts[0])[0] >= 0:
            return self._division("div", parts[0], 1 << int(parts[1].constant))
        if atom.kind in ("div", "rem") and parts[1].is_constant and parts[1].constant >= 1:
            return self._division(atom.kind, parts[0], parts[1].constant)
        if atom.kind == "quotient" and parts[1].is_constant and parts[1].constant:
            return parts[0].times(1 / Fraction(parts[1].constant))
        if atom.kind == "floor" and parts[0].is_constant:
            return constant(math.floor(parts[0].constant))
        if atom.kind in ("min", "max"):
            low, high = self.range(parts[0] - parts[1])
            if high <= 0:
                return parts[0] if atom.kind == "min" else parts[1]
            if low >= 0:
                return parts[1] if atom.kind == "min" else parts[0]
        rest = tuple(part for part in atom.key if not isinstance(part, Polynomial))
        return polynomial_of(Atom(atom.kind, (*parts, *rest)))

    def _division(self, kind: str, value: Polynomial, divisor: Number) -> Polynomial:
        """Quotient or remainder by a number: what it divides evenly is split off."""
        even = Polynomial({product: c for product, c in value.terms.items() if c % divisor == 0})
        rest = value - even
        low, high = self.range(rest)
        if low >= 0 and high < divisor:
            return even.times(Fraction(1) / divisor) if kind == "div" else rest
        if kind == "rem":
            return polynomial_of(Atom("rem", (rest, constant(divisor))))
        return even.times(Fraction(1) / divisor) + polynomial_of(Atom("div", (rest, constant(divisor))))

    def _in_global_ids(self, polynomial: Polynomial) -> Polynomial:
        """`group_id * local_size + local_id` as the global id that it is."""
        for dimension in range(len(self.setting.global_size)):
            group, local, whole = (Atom("id", (f"{name}_id", dimension)) for name in ("group", "local", "global"))
            atoms = polynomial.atoms
            if local not in atoms or group not in atoms:
                continue
            factor, rest = polynomial.split(local)
            group_factor, others = rest.split(group)
            if group_factor == factor.times(self.setting.size("local_size", dimension)):
                offset = constant(self.setting.size("global_offset", dimension))
                polynomial = others + factor * (polynomial_of(whole) - offset)
            elif whole in atoms:
                polynomial = self._in_parts(polynomial)
        return polynomial

    def _in_parts(self, polynomial: Polynomial) -> Polynomial:
        """Global ids as `group_id * local_size + local_id + global_offset`."""
        values = {}
        for atom in polynomial.atoms:
            if atom.kind == "id" and atom.key[0] == "global_id":
                dimension = int(str(atom.key[1]))
                parts = (polynomial_of(Atom("id", (f"{name}_id", dimension))) for name in ("group", "local"))
                group, local = map(self.numeric, parts)
                size, offset = (self.setting.size(name, dimension) for name in ("local_size", "global_offset"))
                values[atom] = group.times(size) + local + constant(offset)
        return polynomial.replaced(values)

    # ---- bounds -------------------------------------------------------------------------------------------------

    def guards_at(self, label: str) -> tuple[Guard, ...]:
        """What is known wherever a block runs."""
        if label not in self._at:
            self._at[label] = self.guards(self.kernel.conditions_at(label))
        return self._at[label]

    def guards(self, conditions: Iterable[Condition]) -> tuple[Guard, ...]:
        """What conditions say, in numbers."""
        found = (Guard(self.numeric(g.polynomial), g.is_unequal) for g in guards_of(conditions))
        return tuple(dict.fromkeys(guard for guard in found if not guard.polynomial.is_long))

    def range(self, polynomial: Polynomial, guards: Sequence[Guard] = ()) -> Range:
        """Least and greatest value; the first is the greater one where the guards allow none at all."""
        value = self.numeric(polynomial)
        if value.is_constant:
            return value.constant, value.constant
        return -self.upper(value.times(-1), guards), self.upper(value, guards)

    def upper(self, polynomial: Polynomial, guards: Sequence[Guard] = ()) -> Bound:
        """Greatest value of a numeric polynomial; minus infinity where the guards allow none."""
        related = self._related(polynomial, (*guards, *self._implied(polynomial)))
        best = self._upper(polynomial, related)
        names = {
            str(a.key[0]) for p in (polynomial, *(g.polynomial for g in related)) for a in p.atoms if a.kind == "id"
        }
        if "global_id" in names and len(names) > 1:
            parts = [Guard(self._in_parts(g.polynomial), g.is_unequal) for g in related]
            best = min(best, self._upper(self._in_parts(polynomial), parts))
        return best

    @staticmethod
    def _related(polynomial: Polynomial, guards: Sequence[Guard]) -> list[Guard]:
        """The guards that have to do with a polynomial, through others or directly."""
        atoms = set(polynomial.atoms)
        left = list(dict.fromkeys(guards))
        chosen: list[Guard] = []
        for _ in range(_ROUNDS):
            near = [guard for guard in left if atoms & guard.polynomial.atoms]
            if not near:
                break
            chosen += near
            left = [guard for guard in left if guard not in near]
            atoms.update(*(guard.polynomial.atoms for guard in near))
        return chosen

    def _implied(self, polynomial: Polynomial) -> list[Guard]:
        """What holds by the meaning of the operations in a polynomial."""
        guards = []
        for atom in polynomial.atoms:
            own, parts = polynomial_of(atom), atom.polynomials
            if atom.kind == "min":
                guards += [Guard(part - own) for part in parts]
            elif atom.kind == "max":
                guards += [Guard(own - part) for part in parts]
            elif atom.kind == "div" and parts[1].is_constant and parts[1].constant > 0:
                divisor = parts[1].constant
                guards += [Guard(parts[0] - own.times(divisor))]
                guards += [Guard(own.times(divisor) + constant(divisor - 1) - parts[0])]
                rest = polynomial_of(Atom("rem", parts))
                guards += [Guard(parts[0] - own.times(divisor) - rest)] if rest.atoms <= polynomial.atoms else []
            elif atom.kind == "phi":
                guards += self._implied_by_counting(atom)
        return guards

    def _implied_by_counting(self, atom: Atom) -> list[Guard]:
        """Of what a loop counts now and then: that it counts no more often than the loop goes round."""
        recurrence = self.kernel.recurrences.get(atom)
        if recurrence is None or recurrence.factor or atom in self._pending:
            return []
        self._pending.add(atom)
        own = polynomial_of(atom)
        changes, anew = self._changes(self.kernel.values.phis[atom][2], own, set())
        steps = [self.range(change) for change in changes]
        self._pending.discard(atom)
        if anew or not steps or any(math.isinf(end) for step in steps for end in step):
            return []
        trip, first = polynomial_of(Atom("trip", (recurrence.header,))), self.numeric(recurrence.first)
        up, down = max(0, *(Fraction(step[1]) for step in steps)), min(0, *(Fraction(step[0]) for step in steps))
        return [Guard(first.plus(trip, up) - own), Guard(own - first.plus(trip, down))]

    def _upper(self, polynomial: Polynomial, guards: Sequence[Guard]) -> Bound:
        box = self._box(polynomial, guards)
        if any(low > high for low, high in box.values()):
            return -math.inf
        self._left = _MOST_BOUNDS
        return self._eliminated(polynomial, [g for g in guards if not g.is_unequal], box, _DEPTH)

    def _eliminated(self, polynomial: Polynomial, guards: list[Guard], box: Box, depth: int) -> Bound:
        """The least bound that comes of adding guards, each multiplied so that a term goes away.

        Source:
            Farkas' lemma: `f + sum of c g` is no less than `f` where every `c` and every guard `g` is not negative.
        """
        best = highest(polynomial, box)
        if depth == 0:
            return best
        for at, guard in enumerate(guards):
            for product, coefficient in polynomial.terms.items():
                against = guard.polynomial.terms.get(product, 0)
                if product and against and (coefficient > 0) != (against > 0) and self._left > 0:
                    self._left -= 1
                    sum_ = polynomial.plus(guard.polynomial, abs(Fraction(coefficient) / Fraction(against)))
                    best = min(best, self._eliminated(sum_, guards[:at] + guards[at + 1 :], box, depth - 1))
        return best

    def _box(self, polynomial: Polynomial, guards: Sequence[Guard]) -> Box:
        """Ranges of the atoms, made smaller by what the guards say of one when the others are known."""
        atoms = dict.fromkeys(atom for p in (polynomial, *(guard.polynomial for guard in guards)) for atom in p.atoms)
        box = {atom: self.atom_range(atom) for atom in sorted(atoms, key=by_kind)}
        for _ in range(_ROUNDS):
            before = dict(box)
            for guard in guards:
                tighten(guard, box)
            if box == before:
                break
        return box

    # ---- ranges of atoms ----------------------------------------------------------------------------------------

    def atom_range(self, atom: Atom) -> Range:
        """Least and greatest value of an atom anywhere in the kernel."""
        if atom not in self._atoms:
            if atom in self._pending:
                return EVERYTHING
            self._pending.add(atom)
            found = _ATOM_RANGES[atom.kind](self, atom) if atom.kind in _ATOM_RANGES else EVERYTHING
            self._pending.discard(atom)
            if self._pending and found == EVERYTHING:
                return found  # perhaps only for what was pending
            self._atoms[atom] = found
        return self._atoms[atom]

    def _id_range(self, name: str, dimension: int) -> Range:
        setting = self.setting
        if name == "global_id":
            first = setting.size("global_offset", dimension)
            return first, first + setting.size("global_size", dimension) - 1
        return 0, setting.size("local_size" if name == "local_id" else "num_groups", dimension) - 1

    def _id(self, atom: Atom) -> Range:
        return self._id_range(str(atom.key[0]), int(str(atom.key[1])))

    def _trip(self, atom: Atom) -> Range:
        """Iterations before the one at hand: one more than those after which the loop went on."""
        most = self.most_trips(str(atom.key[0]))
        return 0, max(most, 0)

    def most_trips(self, header: str) -> Bound:
        """How often a loop goes on at most; infinite where that is not known."""
        flow = self.kernel.flow
        bounds = []
        for latch in flow.loops[header].latches:
            guards = self.guards(self.kernel.values.conditions_on_edge(latch, header))
            box = {a: EVERYTHING if a.kind == "trip" and a.key[0] == header else self.atom_range(a) for g in guards
                   for a in g.polynomial.atoms}  # fmt: skip
            own = Atom("trip", (header,))
            box[own] = (0, math.inf)
            for _ in range(_ROUNDS):
                for guard in guards:
                    tighten(guard, box)
            bounds.append(box[own][1] if box[own][0] <= box[own][1] else -1)
        most = max(bounds) + 1
        return min(most, self._geometric_trips(header)) if most == math.inf else most

    def _geometric_trips(self, header: str) -> Bound:
        """How often a loop goes on that halves a number until it is 0, or doubles it up to a bound."""
        most: Bound = math.inf
        for atom, recurrence in self.kernel.recurrences.items():
            if recurrence.header != header or recurrence.factor in (0, 1):
                continue
            low, high = self.range(recurrence.first)
            if recurrence.factor < 1:
                first, last = 1, high
            else:
                first, last = low, self._before_last(atom, recurrence)
            if first >= 1 and last < math.inf:
                factor = max(recurrence.factor, 1 / recurrence.factor)
                most = min(most, math.floor(math.log(max(float(last / first), 1), factor) + 1e-9) + 1)
        return most

    def _phi(self, atom: Atom) -> Range:
        recurrence = self.kernel.recurrences.get(atom)
        if recurrence is None:
            return EVERYTHING
        low, high = self.range(recurrence.first)
        if 0 < recurrence.factor < 1:
            return min(low, 0), max(high, 0)
        if recurrence.factor > 1 and low >= 0:
            last = self._before_last(atom, recurrence) * int(recurrence.factor)
            if last == math.inf:
                trips = self._geometric_trips(recurrence.header)
                last = high * int(recurrence.factor) ** int(trips) if trips < 64 else math.inf
            return low, max(high, last)
        return self._counted(atom, recurrence, (low, high))

    def _before_last(self, atom: Atom, recurrence: Recurrence) -> Bound:
        """The greatest value with which a loop goes on."""
        values = []
        for latch in self.kernel.flow.loops[recurrence.header].latches:
            guards = self.guards(self.kernel.values.conditions_on_edge(latch, recurrence.header))
            box = {a: self.atom_range(a) for g in guards for a in g.polynomial.atoms}
            for guard in guards:
                tighten(guard, box)
            values.append(box.get(atom, EVERYTHING)[1])
        return max(values)

    def _counted(self, atom: Atom, recurrence: Recurrence, first: Range) -> Range:
        """A value that each iteration either leaves or changes by so much, or sets anew."""
        _, _, following = self.kernel.values.phis[atom]
        changes, anew = self._changes(following, polynomial_of(atom), set())
        ends = [first, *(self.range(value) for value in anew)]
        low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        steps = [self.range(change) for change in changes]
        trips = self._trip(Atom("trip", (recurrence.header,)))[1]
        down, up = min((s[0] for s in steps), default=0), max((s[1] for s in steps), default=0)
        return low + times(min(down, 0), trips), high + times(max(up, 0), trips)

    def _changes(
        self, value: Polynomial, own: Polynomial, seen: set[Polynomial]
    ) -> tuple[list[Polynomial], list[Polynomial]]:
        """What is added to a value in an iteration, and what takes its place, by any way through the loop."""
        if value in seen:
            return [], []
        seen.add(value)
        changes: list[Polynomial] = []
        anew: list[Polynomial] = []
        difference = value - own
        merged = [atom for atom in value.atoms if atom in self.kernel.values.merges]
        if len(merged) == 1 and value.terms.get((merged[0],)) == 1:
            rest = value - polynomial_of(merged[0])
            for part, _ in self.kernel.values.merges[merged[0]]:
                more, new = self._changes(part + rest, own, seen)
                changes += more
                anew += new
        elif next(iter(own.atoms)) not in difference.atoms:
            changes.append(difference)
        else:
            anew.append(value)
        return changes, anew

    def _merged(self, atom: Atom) -> Range:
        ends = []
        for value, conditions in self.kernel.values.merges.get(atom, ()):
            low, high = self.range(value, self.guards(conditions))
            if low <= high:
                ends.append((low, high))
        return (min(e[0] for e in ends), max(e[1] for e in ends)) if ends else EVERYTHING

    def _loaded(self, atom: Atom) -> Range:
        pointer, scalar = self.kernel.values.loads[atom]
        ends = [self._contents(memory) for memory, _ in pointer]
        low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        if scalar == "i8" and (low, high) == EVERYTHING:
            return 0, 255
        return low, high

    def _contents(self, memory: MemoryObject) -> Range:
        """Least and greatest number in a memory: what it holds at first and what is stored."""
        if memory.kind == TABLE:
            return memory.lowest, memory.highest
        ends = [self.range(value) for value in self.kernel.stores.get(memory, ())]
        if memory.kind == ARGUMENT:
            known = self.setting.data.get(memory.index)
            # What is stored may come from what was loaded; then the data's own range has to do.
            ends = [e for e in ends if not any(map(math.isinf, e))]
            ends.append((0, 1) if known is None else known)
        elif memory.kind not in (LOCAL_KIND, PRIVATE) or not ends:
            return EVERYTHING
        return min(e[0] for e in ends), max(e[1] for e in ends)

    def _counter(self, atom: Atom) -> Range:
        """What an atomic function finds: for a counter, as many steps as there are work-items before."""
        pointer, _ = self.kernel.values.loads[atom]
        low, high = self._contents(pointer[0][0]) if pointer[0][0].kind == ARGUMENT else (0, 0)
        step = self.kernel.values.atomic_steps.get(atom)
        if step is None:
            return low, high
        is_local = pointer[0][0].kind == LOCAL_KIND
        sizes = self.setting.local_size if is_local else self.setting.global_size
        return low, high + times(max(self.range(step)[1], 0), math.prod(sizes) - 1)

    def _quotients(self, atom: Atom) -> Range:
        (a, b), (c, d) = (self.range(part) for part in atom.polynomials)
        if atom.kind == "lshr":
            places, bits = int(atom.polynomials[1].constant), int(str(atom.key[2]))
            whole = ((1 << bits) - 1) >> places
            return (0, whole) if a < 0 or b == math.inf else (floored(a, 1 << places), floored(b, 1 << places))
        if c <= 0:
            return EVERYTHING if a < 0 else (0, b)
        ends = [divided(x, y) for x in (a, b) for y in (c, d)]
        low, high = min(ends), max(ends)
        return (low, high) if atom.kind == "quotient" else (floored(low), floored(high))

    def _remainder(self, atom: Atom) -> Range:
        value, divisor = (self.range(part) for part in atom.polynomials)
        high = max(divisor[1] - 1, 0)
        return (0, min(high, value[1])) if value[0] >= 0 else (0, high)

    def _smaller(self, atom: Atom) -> Range:
        ends = [self.range(part) for part in atom.polynomials]
        pick = min if atom.kind == "min" else max
        return pick(e[0] for e in ends), pick(e[1] for e in ends)

    def _bits(self, atom: Atom) -> Range:
        ends = [self.range(part) for part in atom.polynomials]
        if atom.kind == "and":
            highs = [high for low, high in ends if low >= 0]
            return (0, min(highs)) if highs else EVERYTHING
        if any(low < 0 or high == math.inf for low, high in ends):
            return EVERYTHING
        return 0, (1 << max(int(high).bit_length() for _, high in ends)) - 1

    def _power(self, atom: Atom) -> Range:
        low, high = self.range(atom.polynomials[0])
        return (1 << int(low) if 0 <= low < 63 else 1), (1 << int(high) if 0 <= high < 63 else math.inf)

    def _floor(self, atom: Atom) -> Range:
        low, high = self.range(atom.polynomials[0])
        return floored(low), floored(high)

    def _unknown(self, atom: Atom) -> Range:
        return (0, 255) if atom.key[-1] == 8 else EVERYTHING

    @staticmethod
    def _bounded(atom: Atom) -> Range:
        return int(str(atom.key[1])), int(str(atom.key[2]))


_REBUILT = frozenset(("div", "rem", "min", "max", "and", "or", "pow2", "lshr", "floor", "quotient"))
_ATOM_RANGES: dict[str, Callable[[Ranges, Atom], Range]] = {
    "id": Ranges._id,
    "trip": Ranges._trip,
    "phi": Ranges._phi,
    "merge": Ranges._merged,
    "select": Ranges._merged,
    "load": Ranges._loaded,
    "atomic": Ranges._counter,
    **dict.fromkeys(("div", "lshr", "quotient"), Ranges._quotients),
    "rem": Ranges._remainder,
    **dict.fromkeys(("min", "max"), Ranges._smaller),
    **dict.fromkeys(("and", "or"), Ranges._bits),
    "pow2": Ranges._power,
    "floor": Ranges._floor,
    "unknown": Ranges._unknown,
    "bounded": lambda _, atom: Ranges._bounded(atom),
}
