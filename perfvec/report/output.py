"""Where results and messages go: results to stdout, everything else to stderr, both readable in any encoding."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO, final

# What to write where a terminal's encoding lacks a sign; `?s` could be any unit.
_PLAIN = str.maketrans(
    {"µ": "u", "×": "x", "÷": "/", "·": "*", "−": "-", "–": "-", "—": "-", "…": "...", "≤": "<=", "─": "-"}
)


@final
class Output:
    """The two streams of a command.

    Attributes:
        stdout: For results.
        stderr: For messages and progress.
    """

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.stdout = sys.stdout if stdout is None else stdout
        self.stderr = sys.stderr if stderr is None else stderr

    def result(self, text: str) -> None:
        """Write a result, and end the line."""
        _write(self.stdout, text)

    def json(self, record: Mapping[str, object]) -> None:
        """Write a record as one line of JSON. A number that is not finite becomes null, for JSON has none."""
        _write(self.stdout, json.dumps(_finite(record), ensure_ascii=False, allow_nan=False))

    def message(self, text: str) -> None:
        """Write a message, and end the line."""
        _write(self.stderr, text)

    @property
    def is_terminal(self) -> bool:
        """Whether results go to a terminal."""
        return self.stdout.isatty()


def _write(stream: TextIO, text: str) -> None:
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        encoding = stream.encoding
        text = text.translate(_PLAIN).encode(encoding, errors="replace").decode(encoding)
    stream.write(text + "\n")
    stream.flush()


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(item) for item in value]
    return value


@contextmanager
def stdout_kept_clean() -> Iterator[Output]:
    """Send everything that anybody writes to stdout to stderr, down to native code; only the yielded output has stdout.

    OpenCL drivers and kernels print to the process's own stdout, and a line of theirs would break a reader of JSON.
    """
    kept = sys.stdout
    try:
        number, target = kept.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # streams that a program has put in place of the process's own
        sys.stdout = sys.stderr
        try:
            yield Output(kept, sys.stderr)
        finally:
            sys.stdout = kept
        return
    kept.flush()
    own = os.dup(number)
    try:
        with open(own, "w", encoding=kept.encoding, errors=kept.errors, closefd=False) as stream:
            os.dup2(target, number)
            yield Output(stream, sys.stderr)
    finally:
        kept.flush()
        os.dup2(own, number)
        os.close(own)
