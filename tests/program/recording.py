"""The recorder's slow twin: tokens of each sub-group, one after another, from the executor's record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfvec.program.classify import StaticTable
from perfvec.program.driver import MARK_GROUP_END, MARK_SUB_GROUP
from perfvec.trace_data import ADDRESS_SPACES, MEMORY_DTYPE, OPCODE_CLASSES, STRIDE_CLASSES
from tests import naive

# Static instruction, active lanes, outcome of the access by field; None where there is none.
Token = tuple[int, int, tuple[int, ...] | None]
FIELDS = tuple(MEMORY_DTYPE.names or ())
_LIMITS = {"same_address": 63}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What the executor hands on at one time."""

    group: int
    events: NDArray[np.uint32]
    addresses: NDArray[np.int64]


def slow_tokens(
    pieces: Sequence[Piece], static: StaticTable, num_sites: Sequence[int]
) -> dict[tuple[int, int], list[Token]]:
    """Tokens by work-group and sub-group."""
    found: dict[tuple[int, int], list[Token]] = {}
    device = naive.Footprint()
    group_stack, at_group, sub_group = naive.LruStack(), -1, 0
    for piece in pieces:
        if piece.group != at_group:
            group_stack, at_group = naive.LruStack(), piece.group
            device.group += 1
        row = 0
        for segment, mask in piece.events.tolist():
            if segment == MARK_SUB_GROUP:
                sub_group = mask
            if segment in (MARK_SUB_GROUP, MARK_GROUP_END):
                continue
            tokens = found.setdefault((piece.group, sub_group), [])
            for instruction in range(static.start[segment], static.start[segment + 1]):
                outcome = None
                if static.site[instruction] >= 0:
                    addresses = piece.addresses[row + static.site[instruction]].tolist()
                    outcome = _outcome(static.rows[instruction], addresses, mask, group_stack, device)
                tokens.append((instruction, mask.bit_count(), outcome))
            row += num_sites[segment]
    return found


def _outcome(
    row: np.void, addresses: list[int], mask: int, group: naive.LruStack, device: naive.Footprint
) -> tuple[int, ...]:
    num_bytes, space = int(row["access_bytes"]), ADDRESS_SPACES[row["address_space"]]
    values = dict.fromkeys(FIELDS, 0)
    values["stride_class"] = STRIDE_CLASSES.index(naive.stride_name(addresses, mask, num_bytes))
    if OPCODE_CLASSES[row["opcode_class"]] == "atomic":
        values["same_address"], values["distinct_addresses"] = naive.shared_addresses(addresses, mask)
    if space == "local":
        values["bank_passes"] = naive.bank_passes(addresses, mask, num_bytes)
    elif space == "private":
        values["sectors"], values["lines"] = naive.private_lines(addresses, mask, num_bytes)
    else:
        sectors = naive.sectors(addresses, mask, num_bytes)
        values["sectors"], values["lines"] = len(sectors), len({sector // 4 for sector in sectors})
        values["sectors_8"], values["lines_8"] = naive.narrow_sectors(addresses, mask, num_bytes, 8)
        values["sectors_16"], values["lines_16"] = naive.narrow_sectors(addresses, mask, num_bytes, 16)
        values |= naive.touch_lines(sectors, group, device)
    return tuple(min(values[name], _LIMITS.get(name, 255)) for name in FIELDS)


def tokens_of_trace(tables: dict[str, NDArray[np.generic]]) -> dict[tuple[int, int], list[Token]]:
    """The same from a trace's tables: windows in the order of the streams."""
    memory = [tuple(int(value) for value in row) for row in tables["memory"].tolist()]
    triples = zip(
        tables["token_static"].tolist(), tables["token_lanes"].tolist(), tables["token_memory"].tolist(), strict=True
    )
    tokens = [(static, lanes, memory[number] if number >= 0 else None) for static, lanes, number in triples]
    starts, streams, window = tables["window_start"], tables["stream_start"], tables["stream_window"]
    return {
        (int(sub_group["work_group"]), int(sub_group["index"])): [
            token for w in window[streams[i] : streams[i + 1]] for token in tokens[starts[w] : starts[w + 1]]
        ]
        for i, sub_group in enumerate(tables["sub_groups"])
    }
