"""Bits of numbers in int64, by single instructions of the processor; lanes are told by masks of 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from perfvec.program.core.jit import inlined


def _instruction(name: str, *more: ir.Constant) -> Any:
    """A function of one int64 that LLVM has an intrinsic for."""

    @intrinsic
    def instruction(typing_context: Any, value: Any) -> Any:
        del typing_context, value

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            return getattr(builder, name)(arguments[0], *more)

        return types.int64(types.int64), generate

    return instruction


_IS_NEVER_ZERO = ir.Constant(ir.IntType(1), 1)
_count_ones, _trailing_zeros = _instruction("ctpop"), _instruction("cttz", _IS_NEVER_ZERO)
_leading_zeros = _instruction("ctlz", _IS_NEVER_ZERO)


def _plain_lowest_lane(mask):
    return (int(mask) & -int(mask)).bit_length() - 1


def _plain_count_lanes(mask):
    return (int(mask) & 0xFFFF_FFFF_FFFF_FFFF).bit_count()


def _plain_num_digits(number):
    return int(number).bit_length()


def _lowest_lane(mask):
    return _trailing_zeros(mask)


def _count_lanes(mask):
    return _count_ones(mask)


def _num_digits(number):
    return 64 - _leading_zeros(number)


_IS_PLAIN = config.DISABLE_JIT  # pyright: ignore[reportAttributeAccessIssue]  # a run that measures coverage
# The lowest lane of a mask that has any.
lowest_lane: Any = _plain_lowest_lane if _IS_PLAIN else inlined(_lowest_lane)
# How many bits of 64 are set: the lanes of a mask.
count_lanes: Any = _plain_count_lanes if _IS_PLAIN else inlined(_count_lanes)
# Binary digits of a number above 0.
num_digits: Any = _plain_num_digits if _IS_PLAIN else inlined(_num_digits)
# An index that is no negative number, from which numba takes no array's end.
unsigned: Any = np.uint64
