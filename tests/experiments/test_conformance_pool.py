"""Files of tests in child processes: a real child, and one that dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from experiments.conformance import pool
from experiments.conformance.judge import Outcome
from experiments.conformance.pool import run_files
from experiments.conformance.run import count_files, count_tests

TWO_TESTS = """\
/*!
[config]
kernel_name: add
[test]
name: right
arg_in: 1 int 2
arg_out: 0 buffer int[1] 2
[test]
name: wrong
arg_in: 1 int 2
arg_out: 0 buffer int[1] 3
!*/
kernel void add(global int *out, int n) { out[0] += n; }
"""
DYING = """\
#!/bin/sh
read request
case "$request" in
  *'"first": 0'*) BUILT exit 3 ;;
  *) echo '{"test": "wrong", "verdict": "passed", "cause": ""}'; echo '{"done": true}' ;;
esac
"""


def _run(folder: Path) -> list[Outcome]:
    path = folder / "two.cl"
    path.write_text(TWO_TESTS)
    done: list[Path] = []
    outcomes = run_files("ours", [path], folder=folder, processes=1, report=done.append)
    assert done == [path]
    assert sum(count_files(outcomes).values()) == 1
    assert sum(count_tests(outcomes).values()) == 2
    return outcomes[path]


def test_a_real_child(tmp_path: Path):
    right, wrong = _run(tmp_path)
    assert right == Outcome(test="right", verdict="passed")
    assert wrong.verdict == "failed"
    assert wrong.cause == "argument 0[0] is 2, expected 3; 1 of 1 numbers differ"


@pytest.mark.parametrize(("built", "second"), [("""echo '{"built": true}';""", "passed"), ("", "failed")])
def test_a_child_that_dies(built: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of the test at hand alone, if the program was built; of all of them, if not."""
    child = tmp_path / "child"
    child.write_text(DYING.replace("BUILT", built))
    child.chmod(0o700)
    monkeypatch.setattr(pool, "_COMMAND", (str(child),))
    outcomes = _run(tmp_path)
    assert [o.verdict for o in outcomes] == ["failed", second]
    assert outcomes[0].cause == "the process ended with status 3"


def test_padding_is_only_for_accesses(tmp_path: Path):
    """A kernel that writes behind its buffer is refused; with padding it is not, and the padding is not compared."""
    path = tmp_path / "behind.cl"
    path.write_text(
        "/*!\n[test]\nkernel_name: f\narg_out: 0 buffer int[2] 7 7\n!*/\n"
        "kernel void f(global int *out) { out[0] = out[1] = out[2] = 7; }\n"
    )

    def outcome(padding_bytes: int) -> Outcome:
        run = run_files(
            "ours", [path], folder=tmp_path, processes=1, report=lambda _: None, padding_bytes=padding_bytes
        )
        return run[path][0]

    assert outcome(128) == Outcome(test="", verdict="passed")
    assert outcome(0).verdict == "failed"
    assert "which has 8 bytes" in outcome(0).cause


def test_a_child_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "_COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(pool, "_SILENCE_S", 0.2)
    assert {o.cause for o in _run(tmp_path)} == {"no answer within 0.2 s"}
