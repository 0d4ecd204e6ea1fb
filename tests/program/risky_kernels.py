"""Kernels that might bring the process down. Run as a module, it executes them all and prints how each ended."""

from __future__ import annotations

import json
import sys

from perfvec.errors import PerfVecError
from perfvec.launch import Launch
from tests.program.launching import execute, make_launch, quick_machine_code

BUFFER = "buffer:int32:64:uniform(0,9)"


def _kernel(body: str, *args: str, parameters: str = "", before: str = "") -> Launch:
    source = f"{before} kernel void k(global int *o{parameters}) {{ int i = get_global_id(0); {body} }}"
    return make_launch(source, BUFFER, *args)


def risky_kernels() -> dict[str, tuple[Launch, str]]:
    """Launches by name, with how they must end: "ends", the name of an error, or "" where either is right."""
    ends = {
        "division by zero": _kernel("o[i] = 5 / z + 7 % z + (int)(9u / (uint)z);", "int32:0", parameters=", int z"),
        "constant division by zero": _kernel("int z = 0; o[i] = i / z + i % z;"),
        "least by minus one": _kernel("o[i] = INT_MIN / m + INT_MIN % m;", "int32:-1", parameters=", int m"),
        "least by minus one, char": _kernel("o[i] = (char)(m - 127) / m;", "int8:-1", parameters=", char m"),
        "least by minus one, long": _kernel("o[i] = (int)(LONG_MIN / m);", "int64:-1", parameters=", long m"),
        "vectors by zero": _kernel("int4 v = (int4)(i) / (int4)(o[i] - o[i]); o[i] = v.x % v.y;"),
        "shift past the width": _kernel("o[i] = (1 << (i + 40)) + (o[i] >> (i + 32)) + (int)(1L << (i + 64));"),
        "branch on a shift past the width": _kernel(
            "if (1 << n) o[i] = 3; else o[i] = 4;", "int32:99", parameters=", int n"
        ),
        "float to integer": _kernel(
            "float q = i & 1 ? z / z : 1e30f * (i - 32); o[i] = (int)q + (int)(uint)q + (char)q + (int)(long)q;",
            "float32:0",
            parameters=", float z",
        ),
        "value not set": _kernel("int x; if (x) o[i] = x; else o[i] = x + 1;"),
        "divisor not set": _kernel("int d; if (n > 5) d = o[i]; o[i] = 7 / d;", "int32:3", parameters=", int n"),
        "switch on a value not set": _kernel(
            "int d; if (n > 5) d = 1;"
            "switch (d) { case 1: o[i] = 3; break; case 2: o[i] = 9; break; case 8: o[i] = 5; }",
            "int32:3",
            parameters=", int n",
        ),
        "loop without a turn": _kernel("for (int j = 5; j < 5; j++) o[j] = 1; while (o[i] < 0) o[i] = 2;"),
        "switch out of range": _kernel("switch (o[i] + 1000) { case 1: o[i] = 1; case -7: o[i] = 2; }"),
        "unreachable": _kernel("if (o[i] == 5) __builtin_unreachable(); o[i] = 1;"),
        "constant overwritten": _kernel(
            "*(global int *)(size_t)&t[i & 3] = 5; o[i] = t[i & 3];", before="constant int t[4] = {1};"
        ),
        "no arguments": make_launch("kernel void k(void) {}"),
        "only return": make_launch("kernel void k(global int *o) { return; }", BUFFER),
        "many arguments": make_launch(
            f"kernel void k({', '.join(f'int a{n}' for n in range(120))}) {{}}", *(f"int32:{n}" for n in range(120))
        ),
        "deep calls": _kernel(
            "o[i] = f59(i);",
            before="int f0(int x) { return x; }"
            + "".join(f"int f{n}(int x) {{ return f{n - 1}(x) * 3 + {n}; }}" for n in range(1, 60)),
        ),
        "deep loops": _kernel(
            f"int s = 0; {''.join(f'for (int a{n} = 0; a{n} < 2; a{n}++)' for n in range(9))} s ^= a0 + a8; o[i] = s;"
        ),
        "600 blocks": _kernel(
            "uint x = o[i], y = i;"
            + "".join(f"if (x & {1 << n % 12}) {{ x += {n}; y ^= x; }} else y -= x;" for n in range(300))
            + "o[i] = x + y;"
        ),
        "5000 lines": _kernel(
            "uint x = i, y = 7;\n"
            + "".join(
                f"x = x * {n + 3} + y;\ny ^= x >> {n % 19 + 1};\nif ({n % 50} == 0)\no[i] += x;\n" for n in range(1250)
            )
        ),
        "1000 accesses in a row": _kernel("".join(f"o[(i + {n}) & 63] += {n};" for n in range(500))),
        "large switch": _kernel(
            "int x = o[i]; for (int j = 0; j < 10; j++) switch ((x + j) & 511) {"
            + "".join(f"case {n}: x = {n} * x + o[({n} + i) & 63]; break;" for n in range(300))
            + "default: x = x * 7 + 1; } o[i] = x;"
        ),
        "large private arrays": _kernel("int a[4000000]; a[i] = i; a[i + 2000000] = 7; o[i] = a[i] + a[i + 2000000];"),
        "struct of 32 KiB": _kernel(
            "S s; for (int j = 0; j < 4096; j++) s.a[j] = j * i; S t = s; o[i] = t.a[i * 7];",
            before="typedef struct { int a[8192]; } S;",
        ),
        "128 bits": _kernel("ulong a = o[i] * 0x9E3779B97F4A7C15ul; o[i] = (int)(mul_hi(a, a * 3) ^ a);"),
        "halves": _kernel(
            "half h = (half)(double)o[i] * (half)1.5f; o[i] = (int)h + (h > (half)2);",
            before="#pragma OPENCL EXTENSION cl_khr_fp16: enable\n",
        ),
    }  # fmt: skip
    fails = {
        "pointer not set": ("MemoryAccessError", "global int *p = o + (1L << 45); o[i] = p[i];"),
        "null": ("MemoryAccessError", "volatile global int *p = 0; if (o[i] > 99) p = o; o[i] = p[i];"),
        "private as global": (
            "MemoryAccessError", "int x[4]; x[o[i] & 3] = i; o[i] = ((global int *)(size_t)x)[i & 3];"
        ),
        "global as private": ("MemoryAccessError", "o[i] = ((int *)(size_t)o)[i & 3];"),
        "global as local": ("", "o[i] = ((local int *)(size_t)o)[i & 3];"),
        "block copy far out": ("MemoryAccessError", "((global S *)o)[i + 1] = ((global S *)o)[i];"),
        "address wraps": ("MemoryAccessError", "o[i + ((long)o[i] + 1 << 54)] = 1;"),
        "endless": ("BudgetError", "volatile int x = 1; while (x);"),
    }  # fmt: skip
    struct = "typedef struct { int a[8192]; } S;"
    return {name: (launch, "ends") for name, launch in ends.items()} | {
        name: (_kernel(body, before=struct), expected) for name, (expected, body) in fails.items()
    }


def _run() -> None:
    for name, (launch, expected) in risky_kernels().items():
        for optimise in (True, False):
            found, message = "ends", ""
            try:
                with quick_machine_code():
                    execute(launch, optimise=optimise, budget=3_000_000)
            except PerfVecError as error:
                found, message = type(error).__name__, str(error)[:200]
            outcome = {"name": name, "optimise": optimise, "expected": expected, "found": found, "message": message}
            sys.stdout.write(json.dumps(outcome) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _run()
