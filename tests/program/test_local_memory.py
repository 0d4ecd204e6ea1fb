"""Local memory that is read before it is written: one warning, and none where all is well."""

from __future__ import annotations

import logging

import pytest

from perfvec.apply.tracing import trace
from tests.program.launching import make_launch, smallest_launches

pytestmark = pytest.mark.usefixtures("front_end")

HEAD = "int i = get_global_id(0), l = get_local_id(0);"
READS = {
    "half of it is written": (
        "local int t[64]; t[l] = i; barrier(CLK_LOCAL_MEM_FENCE);\n o[i] = t[l + 32 * o[0]];",
        "a.cl:2: kernel 'k' reads 4 bytes at byte 128 of local 't', which no work-item has written",
    ),
    "before it is written": (
        "local int t[32];\n o[i] = t[31 - l]; t[l] = i;\n o[i] += t[l];",
        "a.cl:2: kernel 'k' reads 4",
    ),
    "nothing is written": (
        "local int t[32];\n\n o[i] = t[l];",
        "a.cl:3: local 't' is read, and nothing in the program writes it; its value is whatever a device has there",
    ),
    "nothing is added to": (
        "local int t[1];\n atomic_add(t, 1); barrier(1); o[i] = t[0];",
        "a.cl:2: kernel 'k' reads 4",
    ),
    "an argument": ("o[i] = s[l];", "a.cl:1: kernel 'k' reads 4 bytes at byte 0 of local 's'"),
    "a vector": ("local int4 t[8]; if (l > 8) t[l & 7] = i;\n o[i] = vload4(0, s).x + t[0].x;", "of local 's'"),
}
WELL = {
    "all is written": "local int t[32]; t[l] = i; barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[31 - l];",
    "padding": "local int3 t[32]; t[l] = i; local P q[32]; q[l].a = q[l].c = 2; P p = q[l]; o[i] = t[l].y + p.a;",
    "copied": "event_t e = async_work_group_copy(s, o, 32, 0); wait_group_events(1, &e); o[i] = s[l];",
    "exchanged": "local int t[1]; if (l == 0) atomic_xchg(t, 7); barrier(1); o[i] = t[0];",
    "through a pointer": "local int t[32]; local int *p = t; p[l] = i; barrier(1); o[i] = t[l ^ 1];",
    "only the size": "local int t[32]; o[i] = sizeof(t);",
}


def _warnings(body: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    source = f"typedef struct {{ char a; int c; }} P; kernel void k(global int *o, local int *s) {{ {HEAD} {body} }}"
    launch = make_launch(source, "buffer:int32:64:constant(1)", "local:int32:64", global_size=64)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        trace(launch)
    return [record.message.replace("kernel.cl", "a.cl") for record in caplog.records]


@pytest.mark.parametrize("name", READS)
def test_one_warning(name: str, caplog: pytest.LogCaptureFixture):
    body, message = READS[name]
    found = _warnings(body, caplog)
    assert len(found) == 1
    assert message in found[0]
    assert found[0].endswith("Write it first, by all work-items, and put a barrier between.")


@pytest.mark.parametrize("name", WELL)
def test_no_warning(name: str, caplog: pytest.LogCaptureFixture):
    assert _warnings(WELL[name], caplog) == []


def test_suites_have_none(caplog: pytest.LogCaptureFixture):
    launches = [entry.launch for entry in smallest_launches() if "local " in str(entry.launch.source)][::12]
    assert len(launches) >= 8
    with caplog.at_level(logging.WARNING):
        for launch in launches:
            trace(launch, work_groups=2)
    assert caplog.records == []
