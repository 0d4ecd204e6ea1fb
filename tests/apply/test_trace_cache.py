from __future__ import annotations

from pathlib import Path

import numpy as np

from perfvec.apply.trace_cache import TraceCache
from perfvec.apply.tracing import trace
from tests.apply.tiny import suites


def test_a_trace_is_made_once_and_read_back(tmp_path: Path):
    launch = suites(tmp_path / "suites")[0].launch
    cache = TraceCache.open(tmp_path)
    made = cache.get(launch)
    path = next(tmp_path.rglob("*.h5"))
    assert path.name == f"{launch.digest}.h5"
    assert np.array_equal(made.token_static, trace(launch).token_static)
    written = path.stat().st_mtime_ns
    assert np.array_equal(cache.get(launch).token_static, made.token_static)
    assert path.stat().st_mtime_ns == written


def test_a_damaged_trace_is_made_again(tmp_path: Path):
    launch = suites(tmp_path / "suites")[0].launch
    cache = TraceCache.open(tmp_path)
    made = cache.get(launch)
    path = next(tmp_path.rglob("*.h5"))
    path.write_bytes(path.read_bytes()[:100])
    assert np.array_equal(cache.get(launch).token_static, made.token_static)
    assert path.stat().st_size > 1000
