"""A trace-driven timing model of SIMT devices: a trace and many configurations to times, and where they went."""

from perfvec.arch.timing.config import TimingConfig, field_ranges
from perfvec.arch.timing.machines import MECHANISMS
from perfvec.arch.timing.result import CAUSES, Simulation
from perfvec.arch.timing.simulate import simulate
from perfvec.arch.timing.workload import Workload, read_workload

__all__ = [
    "CAUSES", "MECHANISMS", "Simulation", "TimingConfig", "Workload", "field_ranges", "read_workload", "simulate",
]  # fmt: skip
