"""What is left of a kernel without names, constants, comments and layout: two kernels with one normal form are one."""

from __future__ import annotations

import hashlib
import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"(?P<member>\.\s*[A-Za-z_]\w*)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fFuUlLhH]*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>[-+*/%&|^<>=!]=|&&|\|\||<<|>>|\+\+|--|->|[^\s\w])"
)
_TYPE = re.compile(
    r"(unsigned|signed|void|bool|size_t|event_t|sampler_t|u?(char|short|int|long)\d*|(half|float|double)\d*)$"
)
_KEYWORDS = frozenset(
    ("if", "else", "for", "while", "do", "return", "break", "continue", "switch", "case", "default", "goto", "struct",
     "union", "enum", "typedef", "const", "volatile", "restrict", "static", "inline", "kernel", "global", "local",
     "constant", "private", "sizeof", "unroll", "pragma", "define", "ifdef", "ifndef", "endif", "include")
)  # fmt: skip


def normal_form(source: str) -> str:
    """A source with numbers as `#`, and names as `$0`, `$1` and so on in the order in which they come.

    Types, keywords, built-in functions (whatever is called and not defined in the source) and vector components stay.
    """
    text = _COMMENT.sub(" ", source)
    defined = set(re.findall(r"\bvoid\s+([A-Za-z_]\w*)\s*\(", text))
    numbers: dict[str, str] = {}
    parts = []
    for match in _TOKEN.finditer(text):
        token = re.sub(r"\s", "", match[0])
        if match.lastgroup == "number":
            token = "#"
        elif match.lastgroup == "word" and _is_name(token, text, match.end(), defined):
            token = numbers.setdefault(token, f"${len(numbers)}")
        parts.append(token)
    return " ".join(parts)


def _is_name(word: str, text: str, end: int, defined: set[str]) -> bool:
    if word in _KEYWORDS or word.startswith(("__", "CLK_")) or _TYPE.match(word):
        return False
    is_called = re.match(r"\s*\(", text[end : end + 80]) is not None
    return not is_called or word in defined


def normal_digest(source: str) -> bytes:
    """16 bytes that name the normal form."""
    return hashlib.sha256(normal_form(source).encode()).digest()[:16]
