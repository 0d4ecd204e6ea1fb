"""PerfVec for GPUs: predicts the time of OpenCL kernels on devices that nobody needs to have at hand.

    launch = perfvec.Launch.from_file("gemm.cl", kernel_name="gemm", args=[...], global_size=(1024, 1024))
    for prediction in perfvec.predict(launch):
        print(prediction.device, prediction.kernel_time_s)

Importing the package loads nothing; each name is loaded where it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfvec.version import __version__

if TYPE_CHECKING:
    from perfvec.apply.devices import DeviceEntry as DeviceEntry
    from perfvec.apply.devices import devices as devices
    from perfvec.apply.predicting import Prediction as Prediction
    from perfvec.apply.predicting import encode as encode
    from perfvec.apply.predicting import predict as predict
    from perfvec.apply.tracing import trace as trace
    from perfvec.errors import PerfVecError as PerfVecError
    from perfvec.launch import Launch as Launch
    from perfvec.trace_data import Trace as Trace

_HOMES = {
    "DeviceEntry": "perfvec.apply.devices",
    "Launch": "perfvec.launch",
    "PerfVecError": "perfvec.errors",
    "Prediction": "perfvec.apply.predicting",
    "Trace": "perfvec.trace_data",
    "devices": "perfvec.apply.devices",
    "encode": "perfvec.apply.predicting",
    "predict": "perfvec.apply.predicting",
    "trace": "perfvec.apply.tracing",
}
__all__ = [
    "DeviceEntry",
    "Launch",
    "PerfVecError",
    "Prediction",
    "Trace",
    "__version__",
    "devices",
    "encode",
    "predict",
    "trace",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'perfvec' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
