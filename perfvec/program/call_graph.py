"""Who calls whom in a module: recursion and functions without a body, told before the optimiser hides them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

from perfvec.errors import UnsupportedError

_DEFINE = re.compile(r"^define [^@]*@([\w$.]+)\(")
_CALL = re.compile(r"\bcall\b[^@]*@([\w$.]+)\(")
_DBG = re.compile(r"!dbg (!\d+)")
# Built-ins, LLVM's own functions and the compilers' helpers: `calls.py` says which of them are not executed.
_OTHERS = ("_Z", "llvm.", "__", "printf")


@final
@dataclass(slots=True)
class _Function:
    """Callees in order, each with the text of the debug node of the call."""

    callees: dict[str, str] = field(default_factory=dict)


def check_calls(text: str, kernel_name: str, source_name: str) -> None:
    """Refuse what a kernel must not call.

    Args:
        text: The module, before optimisation.
        kernel_name: Where calls begin.
        source_name: What to call the source in messages.

    Raises:
        UnsupportedError: Functions call themselves or each other, or one has no body.
    """
    functions = _functions(text)
    path: list[tuple[str, Iterator[tuple[str, str]]]] = [(kernel_name, iter(functions[kernel_name].callees.items()))]
    done: set[str] = set()
    while path:
        name, calls = path[-1]
        callee, node = next(calls, ("", ""))
        if not callee:
            done.add(name)
            path.pop()
            continue
        on_path = [other for other, _ in path]
        where = f"kernel {kernel_name!r}, line {_line(text, node)} of {source_name}"
        if callee in on_path:
            ring = " calls ".join(map(repr, (*on_path[on_path.index(callee) :], callee)))
            raise UnsupportedError(
                f"{where}: {ring}: recursion, which OpenCL C does not allow (section 6.9, i). Write a loop, with a "
                "stack in private memory where it needs one."
            )
        if callee in functions and callee not in done:
            path.append((callee, iter(functions[callee].callees.items())))
        elif callee not in functions and not callee.startswith(_OTHERS):
            raise UnsupportedError(
                f"{where}: the function {callee!r} is declared, but the program has no body of it. Add the file that "
                "has it to the source."
            )


def _functions(text: str) -> dict[str, _Function]:
    functions: dict[str, _Function] = {}
    current = _Function()
    for line in text.splitlines():
        if match := _DEFINE.match(line):
            current = functions[match[1]] = _Function()
        elif (match := _CALL.search(line)) and match[1] not in current.callees:
            node = _DBG.search(line)
            current.callees[match[1]] = node[1] if node else ""
    return functions


def _line(text: str, node: str) -> int:
    match = re.search(rf"^{node} = .*\bline: (\d+)", text, re.MULTILINE) if node else None
    return int(match[1]) if match else 0
