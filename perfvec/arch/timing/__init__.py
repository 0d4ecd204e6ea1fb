"""A trace-driven timing model of SIMT devices: a trace and many configurations to times, and where they went."""

from perfvec.arch.timing.config import TimingConfig

__all__ = ["TimingConfig"]
