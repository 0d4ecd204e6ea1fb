"""Slow, obvious twins of fast code: what it computes, written so that one sees that it is right."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.covariance import Covariance
    from perfvec.model.posterior import Measurements, Misfit


def active(addresses: Sequence[int], mask: int) -> list[tuple[int, int]]:
    """Lane and address of each lane in the mask."""
    return [(lane, int(address)) for lane, address in enumerate(addresses) if mask >> lane & 1]


def blocks_touched(address: int, num_bytes: int, block_bytes: int) -> range:
    """Numbers of the aligned blocks that so many bytes from an address lie in."""
    return range(address // block_bytes, (address + num_bytes - 1) // block_bytes + 1)


def sectors(addresses: Sequence[int], mask: int, num_bytes: int) -> list[int]:
    """Distinct sectors of 32 bytes, in the order in which the lanes touch them."""
    found = (s for _, address in active(addresses, mask) for s in blocks_touched(address, num_bytes, 32))
    return list(dict.fromkeys(found))


def narrow_sectors(addresses: Sequence[int], mask: int, num_bytes: int, width: int) -> tuple[int, int]:
    """Sectors and lines of an access whose every `width` lanes access memory on their own."""
    runs = [mask & ((1 << width) - 1) << first for first in range(0, 32, width)]
    found = [sectors(addresses, run, num_bytes) for run in runs]
    return sum(map(len, found)), sum(len({sector // 4 for sector in run}) for run in found)


def bank_passes(addresses: Sequence[int], mask: int, num_bytes: int) -> int:
    """The most distinct words of 4 bytes that fall on one of 32 banks."""
    words = {word for _, address in active(addresses, mask) for word in blocks_touched(address, num_bytes, 4)}
    return max(sum(word % 32 == bank for word in words) for bank in range(32))


def private_lines(addresses: Sequence[int], mask: int, num_bytes: int) -> tuple[int, int]:
    """Distinct sectors and lines where word `w` of 32 lanes fills one line of 128 bytes."""
    real = {
        word * 128 + lane * 4
        for lane, address in active(addresses, mask)
        for word in blocks_touched(address, num_bytes, 4)
    }
    return len({address // 32 for address in real}), len({address // 128 for address in real})


def shared_addresses(addresses: Sequence[int], mask: int) -> tuple[int, int]:
    """The most lanes on one address, and how many addresses there are."""
    values = [address for _, address in active(addresses, mask)]
    return max(values.count(value) for value in values), len(set(values))


def stride_name(addresses: Sequence[int], mask: int, num_bytes: int) -> str:
    """How the addresses of neighbouring lanes differ: a name in `STRIDE_CLASSES`."""
    lanes = active(addresses, mask)
    steps = {(b - a) / (j - i) for (i, a), (j, b) in itertools.pairwise(lanes)}
    if len(steps) > 1 or any(step != int(step) for step in steps):
        return "irregular"
    step = steps.pop() if steps else 0
    if step == 0:
        return "uniform"
    if step == num_bytes:
        return "unit"
    return "small" if abs(step) <= 4 * num_bytes else "large"


@dataclass
class LruStack:
    """Cache lines, the one touched last in front, and the sectors of each that were ever touched."""

    lines: list[int] = field(default_factory=list)
    sectors: dict[int, int] = field(default_factory=dict)

    def touch(self, line: int, sector_bits: int) -> tuple[int, int]:
        """Lines touched since the line was, -1 if it never was; and which of the sectors are new."""
        distance = self.lines.index(line) if line in self.lines else -1
        if distance >= 0:
            self.lines.remove(line)
        self.lines.insert(0, line)
        fresh = sector_bits & ~self.sectors.get(line, 0)
        self.sectors[line] = self.sectors.get(line, 0) | sector_bits
        return distance, fresh


@dataclass
class Footprint:
    """Cache lines with the last work-group that touched each, and the sectors that were ever touched."""

    group: int = 0
    last: dict[int, int] = field(default_factory=dict)
    sectors: dict[int, int] = field(default_factory=dict)

    def touch(self, line: int, sector_bits: int) -> tuple[int, int]:
        """Lines that count for later work-groups than the line does, -1 if it was never touched; new sectors."""
        before = self.last.get(line, -1)
        distance = sum(group > before for group in self.last.values()) if before >= 0 else -1
        self.last[line] = self.group
        fresh = sector_bits & ~self.sectors.get(line, 0)
        self.sectors[line] = self.sectors.get(line, 0) | sector_bits
        return distance, fresh


def log_bucket(distance: int) -> int:
    """1 + floor(log2(1 + distance))."""
    return 1 + math.floor(math.log2(1 + distance))


def touch_lines(found: Iterable[int], group: LruStack, device: Footprint) -> dict[str, int]:
    """Reuse and first touches of the sectors of one access, for its work-group and for all that ran."""
    bits: dict[int, int] = {}
    for sector in found:
        bits[sector // 4] = bits.get(sector // 4, 0) | 1 << sector % 4
    outcome = dict.fromkeys(("reuse_work_group", "reuse_device", "cold_sectors_work_group", "cold_sectors_device"), 0)
    for line, mask in bits.items():
        distance, fresh = group.touch(line, mask)
        if distance >= 0:
            outcome["reuse_work_group"] = max(outcome["reuse_work_group"], log_bucket(distance))
        if fresh:
            far, new = device.touch(line, fresh)
            if far >= 0 and distance < 0:
                outcome["reuse_device"] = max(outcome["reuse_device"], log_bucket(far))
            outcome["cold_sectors_work_group"] += fresh.bit_count()
            outcome["cold_sectors_device"] += new.bit_count()
    return outcome


def is_reachable(successors: dict[int, list[int]], start: int, goal: int) -> bool:
    """Whether some path leads from a node to another."""
    return goal in set(walk(successors, start))


def walk(successors: dict[int, list[int]], start: int) -> Iterator[int]:
    """All nodes that can be reached, the start included."""
    seen = {start}
    todo = [start]
    while todo:
        node = todo.pop()
        yield node
        for target in successors[node]:
            if target not in seen:
                seen.add(target)
                todo.append(target)


def dense(covariance: Covariance) -> NDArray[np.float64]:
    """A covariance as the matrix that it stands for, `(D, D)`."""
    return np.diag(covariance.own) + covariance.shared.T @ covariance.shared - covariance.taken.T @ covariance.taken


def dense_posterior(
    log_mean: NDArray[np.float64], prior: NDArray[np.float64], measured: Measurements, misfit: Misfit
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean `(D,)` and covariance `(D, D)` after measured launches, by the formulas as they stand in textbooks."""
    noise = np.diag(misfit.launch**2 + misfit.noise**2 + measured.deviation**2)
    for row, column in itertools.product(range(len(noise)), repeat=2):
        noise[row, column] += misfit.kernel**2 * (measured.kernels[row] == measured.kernels[column])
    at = log_mean
    for _ in range(200):
        rates = measured.programs * np.exp(at)
        times = rates.sum(axis=1)
        weights = rates / times[:, None]
        gain = prior @ weights.T @ np.linalg.inv(weights @ prior @ weights.T + noise)
        step = log_mean + gain @ (np.log(measured.times / times) - weights @ (log_mean - at)) - at
        at = at + step / max(1.0, np.abs(step).max())
    return at, prior - gain @ weights @ prior


def design_gains(
    covariance: NDArray[np.float64],
    candidates: NDArray[np.float64],
    targets: NDArray[np.float64],
    misfit: Misfit,
    kernels: Sequence[str],
    measured: Sequence[int],
) -> NDArray[np.float64]:
    """What each candidate takes from the mean variance of the targets' log times, some being measured; `(n,)`.

    Candidates and targets by their shares, `(n, D)` and `(m, D)`.
    """
    alike = np.equal.outer(np.array(kernels), np.array(kernels))
    among = candidates @ covariance @ candidates.T + misfit.kernel**2 * alike
    across = targets @ covariance @ candidates.T
    noise = misfit.launch**2 + misfit.noise**2
    done = list(measured)
    solved = np.linalg.solve(among[np.ix_(done, done)] + noise * np.eye(len(done)), among[done])
    across = across - across[:, done] @ solved
    among = among - among[:, done] @ solved
    return (across**2).mean(axis=0) / (np.diag(among) + noise)
