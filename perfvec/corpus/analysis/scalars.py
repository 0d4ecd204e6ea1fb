"""Which scalar arguments are sizes, and what values make the kernel do its work on the whole NDRange."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from perfvec.corpus.analysis.conditions import Condition, Guard, guards_of
from perfvec.corpus.analysis.memory import KernelAccess
from perfvec.corpus.analysis.polynomial import Atom, Number, Polynomial, all_atoms, constant
from perfvec.corpus.analysis.ranges import Ranges, ScalarKey, Setting
from perfvec.corpus.analysis.symbolic import Branch, SymbolicKernel
from perfvec.corpus.analysis.wording import condition_in_words, in_words

FLOAT_VALUE = Fraction(1, 2)
_TRIPS = (64, 16, 8)  # of a loop, by how many loops are around it
_STRIDED_TRIPS = 4  # of a loop in which all work-items of a work-group or of the launch go on together
_MOST = 1 << 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarReason:
    """What a scalar was taken for, and why.

    Attributes:
        role: "size" (bounds ids), "trips" (bounds a loop), "pitch" (distance of rows), "offset", "margin" (takes away
            from a bound), "divisor", "shift", "mode" (is compared for equality), "number" (reaches no address) or
            "given".
        reason: Why, in words.
    """

    role: str
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """A comparison that should hold; `header` is the loop that it keeps going, "" if none."""

    guard: Polynomial
    condition: Condition
    block: str
    header: str


@final
class Scalars:
    """Values for a kernel's scalars in one NDRange.

    Attributes:
        setting: The NDRange with the values so far.
        reasons: What each was taken for.
    """

    def __init__(
        self, kernel: SymbolicKernel, setting: Setting, *, trips_scale: float = 1.0, size_limit: int = 0
    ) -> None:
        self.kernel, self.setting = kernel, setting
        self.reasons: dict[ScalarKey, ScalarReason] = {
            key: ScalarReason(role="given", reason="the value was given") for key in setting.scalars
        }
        self._scale, self._size_limit = trips_scale, size_limit
        self._ranges = Ranges(kernel, setting)
        self._every = _all_scalars(kernel)
        self._floats = _float_scalars(kernel)
        self._goals = list(self._find_goals())
        self._equal = self._compared_for_equality()
        self._run()

    def _run(self) -> None:
        for key in sorted(self._floats - set(self.setting.scalars)):
            self._decide(key, FLOAT_VALUE, "number", "a floating-point number")
        while self._free():
            if not (self._by_bounds() or self._by_loops() or self._by_division() or self._by_pitch()):
                self._by_default()
        self._raise_pitches()

    # ---- what is open -------------------------------------------------------------------------------------------

    def _free(self) -> list[ScalarKey]:
        return [key for key in self._every if key not in self.setting.scalars]

    def _free_in(self, polynomial: Polynomial) -> list[ScalarKey]:
        found = (_key(a) for a in all_atoms([self._ranges.numeric(polynomial)]) if a.kind in ("scalar", "image"))
        return sorted(set(found))

    def _decide(self, key: ScalarKey, value: Number, role: str, reason: str) -> None:
        self.setting = replace(self.setting, scalars={**self.setting.scalars, key: value})
        self.reasons[key] = ScalarReason(role=role, reason=reason)
        self._ranges = Ranges(self.kernel, self.setting)

    def _find_goals(self) -> Iterator[_Goal]:
        for branch in self.kernel.branches:
            condition = self._wanted(branch)
            for comparison in condition.comparisons() if condition is not None else ():
                if comparison.predicate in ("eq", "ne") and not branch.ends_loop:
                    continue
                for guard in guards_of([comparison]):
                    if not guard.is_unequal:
                        yield _Goal(
                            guard=guard.polynomial,
                            condition=comparison,
                            block=branch.block,
                            header=branch.ends_loop,
                        )
        for atom in all_atoms(access.offset for access in self.kernel.accesses):
            if atom.kind == "min":
                left, right = atom.polynomials
                comparison = Condition(kind="compare", predicate="sle", left=left, right=right)
                for guard in (right - left, left - right):
                    yield _Goal(guard=guard, condition=comparison, block=self.kernel.flow.entry, header="")

    @staticmethod
    def _wanted(branch: Branch) -> Condition | None:
        """The condition with which a branch leads to the work."""
        if branch.ends_loop:
            return branch.condition if branch.stays_if else branch.condition.negated()
        if branch.work_if_true == branch.work_if_false:
            return None
        return branch.condition if branch.work_if_true > branch.work_if_false else branch.condition.negated()

    def _compared_for_equality(self) -> dict[ScalarKey, str]:
        found: dict[ScalarKey, str] = {}
        for branch in self.kernel.branches:
            for comparison in branch.condition.every_comparison():
                if comparison.predicate in ("eq", "ne"):
                    for atom in (comparison.left - comparison.right).atoms:
                        if atom.kind == "scalar":
                            found.setdefault(_key(atom), condition_in_words(self.kernel, comparison))
        return found

    # ---- bounds of ids ------------------------------------------------------------------------------------------

    def _by_bounds(self) -> bool:
        """Give a scalar that alone bounds ids the value that lets all work-items through."""
        for goal in self._goals:
            if goal.header:
                continue
            free = self._free_in(goal.guard)
            if len(free) == 1 and not self._divides(goal, free[0]) and self._solve(goal, free[0], "size"):
                return True
        return False

    def _divides(self, goal: _Goal, key: ScalarKey) -> bool:
        """Whether a scalar is a divisor in a goal: then it is no bound, or that of a remainder, which always holds."""
        atoms = all_atoms([self._ranges.numeric(goal.guard)])
        return any(a.kind in ("div", "rem") and _atom(key) in a.polynomials[1].atoms for a in atoms)

    def _solve(self, goal: _Goal, key: ScalarKey, role: str, trips: int = 0) -> bool:
        value = self._least(goal, key, trips)
        if value is None or value < 1:
            return False
        if role == "size" and self._size_limit and value > self._size_limit:
            words = condition_in_words(self.kernel, goal.condition)
            self._decide(key, self._size_limit, "size", f"lets few work-items do {words}: more would take too long")
            return True
        words = condition_in_words(self.kernel, goal.condition)
        what = "lets all work-items do" if role == "size" else f"bounds a loop, about {trips} times:"
        self._decide(key, self._rounded(key, value), role, f"{what} {words}")
        return True

    def _least(self, goal: _Goal, key: ScalarKey, trips: int) -> int | None:
        """The least value of a scalar with which a goal is met; None where a greater value does not help."""
        guard = self._ranges.numeric(goal.guard)
        fixed = {Atom("trip", (goal.header,)): constant(trips - 1)} if goal.header else {}
        guards = [g for g in self._ranges.guards_at(goal.block) if key not in self._free_in(g.polynomial)]
        factor, rest = guard.replaced(fixed).split(_atom(key))
        if key not in self._free_in(rest) and key not in self._free_in(factor):
            low, _ = self._ranges.range(factor, guards)
            need = self._ranges.upper(rest.times(-1), guards)
            if not 0 < low < math.inf or math.isinf(need):
                return None
            return math.ceil(Fraction(need) / Fraction(low))
        return self._searched(goal, key, fixed, guards)

    def _searched(self, goal: _Goal, key: ScalarKey, fixed: dict[Atom, Polynomial], guards: list[Guard]) -> int | None:
        """The least power of two that meets a goal in which a scalar is divided, shifted or multiplied by itself."""
        value = 1
        while value <= _MOST:
            trial = Ranges(self.kernel, replace(self.setting, scalars={**self.setting.scalars, key: value}))
            low = -trial.upper(trial.numeric(goal.guard).replaced(fixed).times(-1), guards)
            if 0 <= low < math.inf:
                return value
            value *= 2
        return None

    def _rounded(self, key: ScalarKey, value: int) -> int:
        """Up to a power of two where the kernel halves the scalar."""
        halved = any(0 < r.factor < 1 and _atom(key) in r.first.atoms for r in self.kernel.recurrences.values())
        return 1 << (value - 1).bit_length() if halved and value > 0 else value

    # ---- loops --------------------------------------------------------------------------------------------------

    def _by_loops(self) -> bool:
        for goal in self._goals:
            if not goal.header:
                continue
            free = self._free_in(goal.guard)
            if len(free) != 1:
                continue
            if self._is_geometric(goal):
                self._decide_doubling(goal, free[0])
                return True
            if self._solve(goal, free[0], "trips", self._trips(goal)):
                return True
        return False

    def _trips(self, goal: _Goal) -> int:
        guard = self._ranges.numeric(goal.guard)
        factor, _ = guard.split(Atom("trip", (goal.header,)))
        step = max(map(abs, self._ranges.range(factor)))
        depth = len(self.kernel.flow.loops_around(goal.header))
        is_strided = 8 <= step < math.inf
        count = _STRIDED_TRIPS if is_strided else _TRIPS[min(depth, len(_TRIPS)) - 1]
        return max(1, int(count * self._scale))

    def _is_geometric(self, goal: _Goal) -> bool:
        return any(
            self.kernel.recurrences[atom].factor > 1
            for atom in self._ranges.numeric(goal.guard).atoms
            if atom.kind == "phi" and atom in self.kernel.recurrences
        )

    def _decide_doubling(self, goal: _Goal, key: ScalarKey) -> None:
        size = math.prod(self.setting.local_size)
        words = condition_in_words(self.kernel, goal.condition)
        self._decide(key, size, "trips", f"bounds a loop that doubles: the size of a work-group: {words}")

    # ---- divisions, rows and the rest ---------------------------------------------------------------------------

    def _everything(self) -> list[Polynomial]:
        found = [access.offset for access in self.kernel.accesses]
        found += [c for texel in self.kernel.texels for c in texel.coordinates]
        return found + [goal.guard for goal in self._goals]

    def _by_division(self) -> bool:
        """Divisors of ids: about the square root, so that quotient and remainder are alike."""
        for atom in all_atoms(map(self._ranges.numeric, self._everything())):
            if atom.kind not in ("div", "rem"):
                continue
            value, divisor = atom.polynomials
            free = self._free_in(divisor)
            if len(free) == 1 and divisor.atoms == {_atom(free[0])} and not self._free_in(value):
                _, high = self._ranges.range(value)
                root = 1 << (math.ceil(math.log2(max(1, high + 1)) / 2) if high < _MOST else 6)
                words = in_words(self.kernel, value)
                self._decide(free[0], max(root, 1), "divisor", f"divides {words}: about its square root")
                return True
        return False

    def _by_pitch(self) -> bool:
        for access in self.kernel.accesses:
            for key in self._free_in(access.offset):
                value = self._pitch(access, key)
                if value is not None and value > 0:
                    words = in_words(self.kernel, access.offset)
                    self._decide(key, value, "pitch", f"distance of rows in byte {words} of {access.memory.name}")
                    return True
        return False

    def _pitch(self, access: KernelAccess, key: ScalarKey) -> int | None:
        """What a scalar has to be so that the rows that it divides an access into do not overlap; None if none."""
        offset = self._ranges.numeric(access.offset)
        factor, rest = offset.split(_atom(key))
        alone = {p: c for p, c in rest.terms.items() if all(atom.kind in ("scalar", "image") for atom in p) and p}
        rest = rest - Polynomial(alone)  # where a row begins is not how long it is
        if not factor.terms or factor.is_constant or self._free_in(rest):
            return None
        coefficients = [Fraction(c) for product, c in factor.terms.items() if product]
        if any(c.denominator != 1 for c in coefficients):
            return None
        step = math.gcd(*(abs(int(c)) for c in coefficients))
        guards = self._ranges.guards_at(access.block)
        low, high = self._ranges.range(rest, guards)
        if math.isinf(low) or math.isinf(high) or low > high:
            return None
        return max(1, math.ceil(Fraction(high - low + access.num_bytes) / step))

    def _raise_pitches(self) -> None:
        """Let what bounds a loop and divides rows be no less than a row of ids is long."""
        for key, reason in list(self.reasons.items()):
            if reason.role != "trips":
                continue
            without = {k: v for k, v in self.setting.scalars.items() if k != key}
            value = int(self.setting.scalars[key])
            self._ranges = Ranges(self.kernel, replace(self.setting, scalars=without))
            found = [self._pitch(access, key) for access in self.kernel.accesses if not access.memory.is_fixed]
            pitch = max((p for p in found if p is not None), default=0)
            self._ranges = Ranges(self.kernel, self.setting)
            if value < pitch <= (self._size_limit or _MOST):
                self._decide(key, self._rounded(key, pitch), "trips", f"{reason.reason}; and a row of that length")

    def _by_default(self) -> None:
        """Decide the scalar that is least likely to be a size."""
        free = self._free()
        margins = [key for key in free if self._is_margin(key)]
        if margins:
            self._decide(margins[0], 0, "margin", "takes away from a bound, or is where ids begin")
            return
        products = [key for key in free if self._is_in_product(key)]
        if products:
            self._decide_factor(products[0])
            return
        bounded = {key for goal in self._goals for key in self._free_in(goal.guard)}
        offsets = [key for key in free if self._is_offset(key)]
        key = next((key for key in (*offsets, *free) if key not in bounded), free[0])
        kinds = {a.kind for a in all_atoms(self._everything()) if any(_atom(key) in p.atoms for p in a.polynomials)}
        if key in self._equal:
            self._decide(key, 1, "mode", f"is compared for equality: {self._equal[key]}")
        elif "pow2" in kinds or "lshr" in kinds:
            self._decide(key, 1, "shift", "shifts a number")
        elif self._is_offset(key):
            self._decide_offset(key)
        elif self._reaches(key):
            self._decide(key, 1, "number", "reaches an address or a bound in a way that is not known")
        else:
            self._decide(key, 1, "number", "reaches no address and no bound")

    def _is_margin(self, key: ScalarKey) -> bool:
        """Whether no greater value of a scalar meets any goal, and it is in one."""
        found = False
        for goal in self._goals:
            factor, _ = self._ranges.numeric(goal.guard).split(_atom(key))
            if not factor.terms:
                continue
            found = True
            low, _ = self._ranges.range(factor)
            if low > 0 or not factor.is_constant:
                return False
        return found and all(factor.is_constant for factor in self._address_factors(key))

    def _address_factors(self, key: ScalarKey) -> list[Polynomial]:
        factors = [self._ranges.numeric(a.offset).split(_atom(key))[0] for a in self.kernel.accesses]
        return [factor for factor in factors if factor.terms]

    def _is_in_product(self, key: ScalarKey) -> bool:
        return any(
            len(product) == 2 and _atom(key) in product and all(atom.kind in ("scalar", "image") for atom in product)
            for goal in self._goals
            for product in self._ranges.numeric(goal.guard).terms
        )

    def _decide_factor(self, key: ScalarKey) -> None:
        total = math.prod(self.setting.global_size)
        root = 1 << math.ceil(math.log2(max(1, total)) / 2)
        self._decide(key, root, "size", "a factor of a bound: about the square root of the number of work-items")

    def _is_offset(self, key: ScalarKey) -> bool:
        factors = self._address_factors(key)
        return bool(factors) and all(factor.is_constant for factor in factors)

    def _decide_offset(self, key: ScalarKey) -> None:
        """An offset is 0, or so large that no address is negative."""
        need = 0
        for access in self.kernel.accesses:
            factor, rest = self._ranges.numeric(access.offset).split(_atom(key))
            if factor.is_constant and factor.constant > 0 and not self._free_in(rest):
                low, high = self._ranges.range(rest, self._ranges.guards_at(access.block))
                if -_MOST < low < 0 and low <= high:
                    need = max(need, math.ceil(-Fraction(low) / Fraction(factor.constant)))
        self._decide(key, need, "offset", "is added to an index" + (": none may be negative" if need else ""))

    def _reaches(self, key: ScalarKey) -> bool:
        return any(_atom(key) == atom for atom in all_atoms(self._everything()))


def _all_scalars(kernel: SymbolicKernel) -> list[ScalarKey]:
    """Scalars that are arguments, lanes of vectors, members of structs that are read, and sizes of images."""
    keys: set[ScalarKey] = set()
    for index, parameter in enumerate(kernel.kernel.parameters):
        if not parameter.byval and not parameter.type.startswith("ptr"):
            width = int(parameter.type[1:].split()[0]) if parameter.type.startswith("<") else 1
            keys |= {("scalar", index, lane) for lane in range(width)}
    every = [access.offset for access in kernel.accesses]
    every += [c for texel in kernel.texels for c in texel.coordinates]
    every += [p for b in kernel.branches for c in b.condition.every_comparison() for p in (c.left, c.right)]
    every += [p for r in kernel.recurrences.values() for p in (r.first, r.step) if p is not None]
    keys |= {_key(atom) for atom in all_atoms(every) if atom.kind in ("scalar", "image")}
    return sorted(keys)


def _float_scalars(kernel: SymbolicKernel) -> set[ScalarKey]:
    floats = ("float", "double", "half")
    return {
        key
        for key in _all_scalars(kernel)
        if key[0] == "scalar" and kernel.kernel.parameters[key[1]].type.strip("<>").split()[-1] in floats
    }


def _key(atom: Atom) -> ScalarKey:
    return atom.kind, int(str(atom.key[0])), int(str(atom.key[1]))


def _atom(key: ScalarKey) -> Atom:
    return Atom(key[0], key[1:])
