from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import perfvec


def test_importing_the_package_loads_nothing_heavy():
    heavy = "numpy torch numba llvmlite pyopencl h5py tyro rich"
    script = f"import sys, perfvec; print([name for name in {heavy.split()!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_each_public_name_is_there_and_is_loaded_once():
    for name in perfvec.__all__:
        assert getattr(perfvec, name) is getattr(perfvec, name)
    assert set(perfvec.__all__) <= set(dir(perfvec))
    assert perfvec.__version__ == version("perfvec")
    assert callable(perfvec.trace)
    assert perfvec.Launch.__module__ == "perfvec.launch"


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'perfvec' has no attribute 'predictt'; it has DeviceEntry"):
        perfvec.predictt  # noqa: B018
