"""OpenCL devices and data for tests, and every reason to skip for the lack of one."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pyopencl as cl


def pocl_device() -> cl.Device:
    """The PoCL device: OpenCL on the CPU, the tests' second opinion. Skips the test where it is not installed."""
    return _device("Portable Computing Language", hint="apt-get install pocl-opencl-icd")


def oclgrind_device() -> cl.Device:
    """The Oclgrind simulator: slow, unoptimised, careful. Skips the test where it is not installed."""
    return _device("Oclgrind", hint="pip install 'pyopencl[oclgrind]'")


def _device(platform_name: str, *, hint: str) -> cl.Device:
    cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed (pip install pyopencl)")
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    for platform in platforms:
        if platform.name == platform_name:
            return platform.get_devices()[0]
    return pytest.skip(f"the OpenCL platform {platform_name!r} is not installed ({hint})")


def shared_file(path: Path) -> Path:
    """A file of the data sets that lie beside a developer's checkout. Skips the test where it is not there."""
    return path if path.is_file() else pytest.skip(f"{path} is not there; it is no part of the repository")


def other_clangs() -> list[object]:
    """Every clang of the machine, as parameters; one that skips where there is none."""
    names = ("clang", *(f"clang-{version}" for version in range(13, 40)))
    found = [name for name in names if shutil.which(name)]
    missing = pytest.mark.skip(reason="no clang beside Oclgrind's is installed (apt-get install clang)")
    return found or [pytest.param("clang", marks=missing)]


def c_library() -> ctypes.CDLL:
    """The C library of this process. Skips the test where its functions of many arguments are called otherwise."""
    if sys.platform == "darwin" or os.name == "nt":
        return pytest.skip("variadic functions have a calling convention of their own here")
    return ctypes.CDLL(None)
