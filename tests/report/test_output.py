from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from perfvec.report.output import Output, stdout_kept_clean

NOISY = """
import os, sys
from perfvec.report.output import stdout_kept_clean
print("before")
with stdout_kept_clean() as output:
    print("python's own")
    os.write(1, b"native code\\n")
    output.json({"a": 1.5})
print("after")
"""


def test_json_is_one_line_and_nan_is_null():
    stream = io.StringIO()
    Output(stream).json({"µ": float("nan"), "list": (1, float("inf"), "x"), "deep": {"y": [2.5]}})
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert json.loads(text) == {"µ": None, "list": [1, None, "x"], "deep": {"y": [2.5]}}


def test_signs_that_an_encoding_lacks_are_spelt_out():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Output(stream).result("12 µs · 3 × 4 ☃")
    assert raw.getvalue() == b"12 us * 3 x 4 ?\n"


def test_only_the_output_reaches_stdout_while_it_is_kept_clean():
    ran = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["before", '{"a": 1.5}', "after"]
    assert set(ran.stderr.splitlines()) == {"python's own", "native code"}


def test_streams_without_a_file_are_kept_clean_too(capsys: pytest.CaptureFixture[str]):
    with stdout_kept_clean() as output:
        sys.stdout.write("noise\n")
        output.json({"b": 2})
    sys.stdout.write("again\n")
    captured = capsys.readouterr()
    assert captured.out == '{"b": 2}\nagain\n'
    assert captured.err == "noise\n"
