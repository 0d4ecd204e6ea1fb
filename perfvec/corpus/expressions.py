"""Small arithmetic over named sizes, as suite files use it: `M*K`, `round_up(N, TILE)`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from perfvec.errors import ConfigError

# How each operator is written in Python; shifts are of whole numbers.
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "({} + {})",
    ast.Sub: "({} - {})",
    ast.Mult: "({} * {})",
    ast.FloorDiv: "({} // {})",
    ast.Div: "({} / {})",
    ast.Mod: "({} % {})",
    ast.Pow: "({} ** {})",
    ast.LShift: "(int({}) << int({}))",
    ast.RShift: "(int({}) >> int({}))",
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
        return _compiled(expression.strip())(names)
    except KeyError as error:
        known = ", ".join(sorted(names)) or "none"
        raise ConfigError(f"unknown name {error.args[0]!r}; known here: {known}") from None
    except (SyntaxError, ArithmeticError, ValueError, TypeError) as error:
        raise ConfigError(f"cannot evaluate {expression!r}: {error}") from error


@lru_cache(maxsize=1 << 16)
def _compiled(expression: str) -> Callable[[Mapping[str, float]], float | int]:
    """An expression as a Python function: corpora evaluate the same ones for a hundred thousand launches."""
    text = _python(ast.parse(expression, mode="eval").body)
    # Safe: nothing of the user's text is evaluated. `_python` writes it anew, from finite numbers, quoted names,
    # operators and the functions above; whatever else it meets is refused.
    return eval(f"lambda names: {text}", {"__builtins__": {}, **_FUNCTIONS})


def _python(node: ast.expr) -> str:
    """An expression in Python, made of nothing but what is allowed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and math.isfinite(node.value):
        return repr(node.value)
    if isinstance(node, ast.Name):
        return f"names[{node.id!r}]"
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)].format(_python(node.left), _python(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"(-{_python(node.operand)})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return f"{node.func.id}({', '.join(map(_python, node.args))})"
    raise ConfigError(
        f"{ast.unparse(node)!r} is not allowed; use numbers, names, + - * / // % ** << >> and {', '.join(_FUNCTIONS)}"
    )
