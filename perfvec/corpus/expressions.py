"""Small arithmetic over named sizes, as suite files use it: `M*K`, `round_up(N, TILE)`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from perfvec.errors import ConfigError

_BINARY: dict[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: lambda a, b: int(a) << int(b),
    ast.RShift: lambda a, b: int(a) >> int(b),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "ceil_div": lambda a, b: -(-a // b),
    "round_up": lambda a, b: -(-a // b) * b,
}


def evaluate(expression: str | float, names: Mapping[str, float]) -> float | int:
    """Evaluate an expression over numbers, names, `+ - * / // % ** << >>` and a few functions.

    Args:
        expression: The text, or a number, which is returned as it is.
        names: Values of the names that the text may use.

    Raises:
        ConfigError: The text is not such an expression, or uses an unknown name.
    """
    if not isinstance(expression, str):
        return expression
    try:
        return _evaluate(_parse(expression.strip()), names)
    except (SyntaxError, ArithmeticError, ValueError, TypeError) as error:
        raise ConfigError(f"cannot evaluate {expression!r}: {error}") from error


@lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _evaluate(node: ast.expr, names: Mapping[str, float]) -> float | int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ConfigError(f"unknown name {node.id!r}; known here: {', '.join(sorted(names)) or 'none'}")
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_evaluate(argument, names) for argument in node.args))
    raise ConfigError(
        f"{ast.unparse(node)!r} is not allowed; use numbers, names, + - * / // % ** << >> and {', '.join(_FUNCTIONS)}"
    )
