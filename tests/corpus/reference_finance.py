"""NumPy references of the suite `finance`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from tests.corpus.reference import Expected, ReferenceCase

Array = NDArray[Any]
DENSITY = 1 / np.sqrt(2 * np.pi)


def _call_price(spot: Array, strike: Array, years: Array, rate: float, volatility: Array) -> Array:
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    return spot * ndtr(d1) - strike * np.exp(-rate * years) * ndtr(d1 - deviation)


def black_scholes(case: ReferenceCase) -> dict[int, Any]:
    spot, strike, years = (a.astype(float) for a in case.args[:3])
    rate, volatility = float(case.args[5]), float(case.args[6])
    call = _call_price(spot, strike, years, rate, volatility)
    put = call - spot + strike * np.exp(-rate * years)  # put-call parity
    # Float32 differences of prices of 100.
    return {3: Expected(values=call, atol=2e-3), 4: Expected(values=put, atol=2e-3)}


def black_scholes_greeks(case: ReferenceCase) -> dict[int, Any]:
    spot, strike, years, volatility = case.args[0].astype(float).T
    rate = float(case.args[2])
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    density = DENSITY * np.exp(-(d1**2) / 2)
    price = _call_price(spot, strike, years, rate, volatility)
    greeks = [price, ndtr(d1), density / (spot * deviation), spot * density * np.sqrt(years)]
    return {1: Expected(values=np.stack(greeks, 1), rtol=1e-3)}


def black_scholes_fp64(case: ReferenceCase) -> dict[int, Any]:
    spot, strike, _, rate, volatility, years, _ = case.args
    return {2: Expected(values=_call_price(spot, strike, years, rate, volatility), rtol=1e-9, atol=1e-9)}


def _binomial(options: Array, rate: float, steps: int, sign: int, is_american: bool) -> Array:
    """Backward induction on the whole tree of every option; `sign` is 1 for calls, -1 for puts."""
    spot, strike, years, volatility = options.astype(float).T[:, :, None]
    dt = years / steps
    up = np.exp(volatility * np.sqrt(dt))
    grow = np.exp(rate * dt)
    share = (grow - 1 / up) / (up - 1 / up)

    def exercise(level: int) -> Array:
        return sign * (spot * up ** (2.0 * np.arange(level + 1) - level) - strike)

    values = np.maximum(exercise(steps), 0)
    for level in range(steps - 1, -1, -1):
        values = (share * values[:, 1:] + (1 - share) * values[:, :-1]) / grow
        if is_american:
            values = np.maximum(values, exercise(level))
    return values[:, 0]


def binomial_local(case: ReferenceCase) -> dict[int, Any]:
    values = _binomial(case.args[0], float(case.args[2]), case.defines["STEPS"], 1, is_american=False)
    # A thousand float32 levels.
    return {1: Expected(values=values, rtol=3e-3, atol=1e-3)}


def binomial_private(case: ReferenceCase) -> dict[int, Any]:
    is_american = bool(case.defines["AMERICAN"])
    values = _binomial(case.args[0], float(case.args[2]), case.defines["STEPS"], -1, is_american=is_american)
    return {1: Expected(values=values, rtol=1e-3, atol=1e-4)}


def _xorshift(state: Array) -> Array:
    state = state ^ (state << np.uint32(13))
    state = state ^ (state >> np.uint32(17))
    return state ^ (state << np.uint32(5))


def _count_inside(case: ReferenceCase) -> Array:
    seed, samples = case.args[1], case.args[2]
    x = np.arange(case.global_size[0], dtype=np.uint32) + seed
    x = (x ^ np.uint32(61)) ^ (x >> np.uint32(16))
    x = x * np.uint32(9)
    x = x ^ (x >> np.uint32(4))
    x = x * np.uint32(0x27D4EB2D)
    state = (x ^ (x >> np.uint32(15))) | np.uint32(1)
    inside = np.zeros(state.size, np.int64)
    for _ in range(samples):
        state = _xorshift(state)
        inside += (state >> 17).astype(np.int64) ** 2 + (state & 0x7FFF).astype(np.int64) ** 2 < 1 << 30
    # The generator is fair: four in pi points fall inside.
    assert abs(4 * inside.sum() / (samples * state.size) - np.pi) < 0.05
    return inside


def pi_atomic(case: ReferenceCase) -> dict[int, Any]:
    return {0: _count_inside(case).sum(keepdims=True)}


def pi_groups(case: ReferenceCase) -> dict[int, Any]:
    return {0: _count_inside(case).reshape(-1, case.local_size[0]).sum(1)}


def _two_normals(state: Array) -> tuple[Array, Array, Array]:
    def following(state: Array) -> tuple[Array, Array]:
        state = state * np.uint32(1664525) + np.uint32(1013904223)
        return state, ((state >> 8) + 0.5) / 2**24

    state, u = following(state)
    state, v = following(state)
    radius = np.sqrt(-2 * np.log(u))
    return state, radius * np.cos(2 * np.pi * v), radius * np.sin(2 * np.pi * v)


def _european_sum(state: Array, spot: Any, strike: Any, drift: Any, deviation: Any, pairs: int) -> Array:
    total = np.zeros(np.broadcast(state, spot).shape)
    for _ in range(pairs):
        state, *normals = _two_normals(state)
        for z in normals:
            total += np.maximum(spot * np.exp(drift + deviation * z) - strike, 0)
    return total


def european_paths(case: ReferenceCase) -> dict[int, Any]:
    seeds, _, spot, strike, drift, deviation, pairs, _ = case.args
    market = (float(spot), float(strike), float(drift), float(deviation))
    return {1: Expected(values=_european_sum(seeds, *market, pairs) / (2 * pairs), rtol=1e-3, atol=1e-3)}


def european_group(case: ReferenceCase) -> dict[int, Any]:
    options, _, pairs = case.args
    group = case.defines["GROUP"]
    state = np.arange(group, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(12345)
    sums = _european_sum(state[None, :], *options.astype(float).T[:, :, None], pairs)
    return {1: Expected(values=sums.sum(1) / (2 * pairs * group), rtol=1e-3)}


def asian_paths(case: ReferenceCase) -> dict[int, Any]:
    state, _, spot, strike, drift, deviation, steps, _ = case.args
    log_price, total = np.full(state.shape, np.log(float(spot))), np.zeros(state.shape)
    for _ in range(steps // 2):
        state, *normals = _two_normals(state)
        for z in normals:
            log_price = log_price + float(drift) + float(deviation) * z
            total += np.exp(log_price)
    return {1: Expected(values=np.maximum(total / steps - float(strike), 0), rtol=1e-3, atol=1e-3)}


def heston_paths(case: ReferenceCase) -> dict[int, Any]:
    state = case.args[0]
    spot, variance, mean_variance, correlation, dt = (float(a) for a in case.args[2:7])
    log_price = np.log(spot)
    for _ in range(case.args[7]):
        state, z1, z2 = _two_normals(state)
        other = correlation * z1 + np.sqrt(1 - correlation**2) * z2
        log_price = log_price + np.sqrt(variance * dt) * z1 - variance * dt / 2
        variance = np.maximum(variance + 2 * (mean_variance - variance) * dt + 0.3 * np.sqrt(variance * dt) * other, 0)
    return {1: Expected(values=np.exp(log_price), rtol=1e-3)}


def _stored_normals(case: ReferenceCase) -> Array:
    """Shape `(step, path)`."""
    normals, steps, count = case.args[0].astype(float), case.args[6], case.args[7]
    return normals.reshape(count, steps).T if case.defines["PATH_MAJOR"] else normals.reshape(steps, count)


def asian_stored(case: ReferenceCase) -> dict[int, Any]:
    spot, strike, drift, deviation = (float(a) for a in case.args[2:6])
    prices = spot * np.exp(np.cumsum(drift + deviation * _stored_normals(case), axis=0))
    return {1: Expected(values=np.maximum(prices.mean(0) - strike, 0), rtol=1e-3, atol=1e-3)}


def barrier_stored(case: ReferenceCase) -> dict[int, Any]:
    spot, strike, limit, deviation = (float(a) for a in case.args[2:6])
    prices = spot * np.exp(np.cumsum(deviation * _stored_normals(case) - deviation**2 / 2, axis=0))
    payoffs = np.where((prices > limit).all(0), np.maximum(prices[-1] - strike, 0), 0)
    # Rounding decides whether a path that touches the barrier crosses it.
    return {1: Expected(values=payoffs, rtol=1e-3, atol=1e-3, share=0.998)}


def box_muller(case: ReferenceCase) -> dict[int, Any]:
    u, v = case.args[0].astype(float).T
    radius = np.sqrt(-2 * np.log(1 - u))
    normals = np.stack([radius * np.cos(2 * np.pi * v), radius * np.sin(2 * np.pi * v)], 1)
    # 1 - u loses bits for small u, and the device's fast functions are not exact.
    return {1: Expected(values=normals, atol=2e-3)}


def polar_method(case: ReferenceCase) -> dict[int, Any]:
    state, _, rounds, count = case.args
    sums = np.zeros((count, 2))
    for _ in range(rounds):
        point, square = np.zeros((count, 2)), np.full(count, 2.0)
        while (waiting := (square >= 1) | (square == 0)).any():
            first = _xorshift(state)
            second = _xorshift(first)
            drawn = np.stack([first.view(np.int32), second.view(np.int32)], 1) / 2**31
            point = np.where(waiting[:, None], drawn, point)
            square = (point**2).sum(1)
            state = np.where(waiting, second, state)
        sums += point * np.sqrt(-2 * np.log(square) / square)[:, None]
    # Rounding decides whether a point on the circle is inside.
    return {1: Expected(values=sums, rtol=1e-3, atol=1e-3, share=0.999)}


def inverse_normal(case: ReferenceCase) -> dict[int, Any]:
    return {1: Expected(values=ndtri(case.args[0].astype(float)), rtol=1e-3, atol=1e-4)}


def _bridge(normals: Array) -> Array:
    """Brownian bridges in normal order of time; `normals` and the result have time first."""
    steps = len(normals)
    path = np.zeros((steps + 1, normals.shape[1]))
    path[steps] = normals[0]
    gap, drawn = steps, 1
    while gap > 1:
        left = np.arange(0, steps, gap)
        deviation = np.sqrt(gap / steps / 4)
        path[left + gap // 2] = (path[left] + path[left + gap]) / 2 + deviation * normals[drawn : drawn + left.size]
        drawn += left.size
        gap //= 2
    return path


def bridge_global(case: ReferenceCase) -> dict[int, Any]:
    return {1: Expected(values=_bridge(case.args[0].reshape(-1, case.args[2]).astype(float)), atol=1e-4)}


def bridge_local(case: ReferenceCase) -> dict[int, Any]:
    normals = case.args[0].reshape(-1, 1 << case.defines["LEVELS"]).astype(float)
    return {1: Expected(values=_bridge(normals.T).T, atol=1e-4)}


def walk_until_exit(case: ReferenceCase) -> dict[int, Any]:
    state, _, half_width, max_steps, _ = case.args
    position, steps = np.zeros(state.size, int), np.zeros(state.size, int)
    for _ in range(max_steps):
        is_walking = np.abs(position) < half_width
        state = _xorshift(state)
        position += np.where(is_walking, np.where(state & 0x10000, 1, -1), 0)
        steps += is_walking
    return {1: steps}


def walk_many(case: ReferenceCase) -> dict[int, Any]:
    state, _, half_width, num_walks, _ = case.args
    position, walks, total = (np.zeros(state.size, int) for _ in range(3))
    while (is_walking := walks < num_walks).any():
        state = _xorshift(state)
        position += np.where(state & 0x10000, 1, -1)
        total += is_walking
        is_out = np.abs(position) >= half_width
        position[is_out] = 0
        walks += is_out
    return {1: total}


def _implied(case: ReferenceCase) -> tuple[Array, Array]:
    """Implied volatilities by many halvings, and where the price has one inside the kernel's limits."""
    spot, years, price = (a.astype(float) for a in case.args[:3])
    low, high = np.full(spot.shape, 0.01), np.full(spot.shape, 5.0)
    for _ in range(60):
        middle = (low + high) / 2
        is_over = _call_price(spot, 1.0, years, 0.0, middle) > price
        low, high = np.where(is_over, low, middle), np.where(is_over, middle, high)
    return (low + high) / 2, (low > 0.011) & (high < 4.99)


def implied_newton(case: ReferenceCase) -> dict[int, Any]:
    volatility, has_solution = _implied(case)
    assert has_solution.mean() > 0.8
    spot, years, price = (a.astype(float) for a in case.args[:3])
    tolerance, max_rounds = float(case.args[5]), int(case.args[6])
    guess, rounds = np.full(spot.shape, 0.5), np.zeros(spot.shape, int)
    for _ in range(max_rounds):
        d1 = np.log(spot) / (guess * np.sqrt(years)) + guess * np.sqrt(years) / 2
        vega = spot * np.sqrt(years) * DENSITY * np.exp(-(d1**2) / 2)
        miss = _call_price(spot, 1.0, years, 0.0, guess) - price
        is_active = np.abs(miss) >= tolerance
        rounds += is_active
        guess = np.where(is_active, np.clip(guess - miss / np.maximum(vega, 1e-4), 0.01, 5), guess)
    assert np.isclose(guess, volatility, rtol=1e-2)[has_solution].mean() > 0.98
    # Rounding decides the last round, and all rounds of prices without a solution.
    return {
        3: Expected(values=guess, rtol=1e-2, atol=1e-3, share=0.97),
        4: Expected(values=rounds, share=0.97),
    }


def implied_bisection(case: ReferenceCase) -> dict[int, Any]:
    # Twenty halvings of [0.01, 5] leave 5e-6, float32 prices some 1e-4 where the vega is small.
    return {3: Expected(values=_implied(case)[0], rtol=1e-3, atol=1e-3, share=0.98)}


def _radical_inverse(numbers: Array, base: int) -> Array:
    value, place, rest = np.zeros(numbers.shape), 1.0, numbers.copy()
    while rest.any():
        place /= base
        value += rest % base * place
        rest //= base
    return value


def halton_points(case: ReferenceCase) -> dict[int, Any]:
    _, first, base_x, base_y, count = (a if i == 0 else int(a) for i, a in enumerate(case.args))
    numbers = first + np.arange(count)
    return {0: np.stack([_radical_inverse(numbers, base_x), _radical_inverse(numbers, base_y)], 1)}


def sobol_points(case: ReferenceCase) -> dict[int, Any]:
    directions, _, first, count = case.args
    numbers = int(first) + np.arange(count)
    code = numbers ^ (numbers >> 1)
    bits = np.zeros((directions.size // 32, count), np.int64)
    for bit in range(32):
        bits ^= directions.reshape(-1, 32)[:, bit, None] * (code >> bit & 1)
    return {1: (bits >> 8) / 2**24}


def weyl_integral(case: ReferenceCase) -> dict[int, Any]:
    num_items, count = case.global_size[0], case.args[1]
    numbers = np.arange(count)
    x, y = ((numbers * factor % 2**32 >> 8) / 2**24 for factor in (3242174889, 2447445414))
    sums = np.bincount(numbers % num_items, weights=x * x * y, minlength=num_items)
    assert abs(sums.sum() / count - 1 / 6) < 1e-3
    return {0: sums}


def moving_average(case: ReferenceCase) -> dict[int, Any]:
    prices, _, days, window = case.args
    sums = np.pad(prices.reshape(-1, days).astype(float).cumsum(1), ((0, 0), (window, 0)))
    lengths = np.minimum(np.arange(days) + 1, window)
    return {1: (sums[:, window:] - sums[:, :-window]) / lengths}


def exponential_average(case: ReferenceCase) -> dict[int, Any]:
    prices = case.args[0].reshape(-1, case.args[3]).astype(float)
    average, averages = prices[:, 0], []
    for day in range(prices.shape[1]):
        average = average + float(case.args[2]) * (prices[:, day] - average)
        averages.append(average)
    return {1: np.stack(averages, 1)}


def max_drawdown(case: ReferenceCase) -> dict[int, Any]:
    prices = case.args[0].reshape(case.args[2], -1).astype(float)
    return {1: (1 - prices / np.maximum.accumulate(prices)).max(0)}


def covariance_pairs(case: ReferenceCase) -> dict[int, Any]:
    return {1: Expected(values=np.cov(case.args[0].reshape(-1, case.args[2]).astype(float)), atol=1e-4)}


def bond_values(case: ReferenceCase) -> dict[int, Any]:
    years, coupons, curve, _, curve_points, years_per_point, _ = case.args
    year = np.arange(1, years.max() + 1)
    rates = np.interp(year / float(years_per_point), np.arange(curve_points), curve.astype(float))
    discounts = np.exp(-rates * year)
    sums = discounts.cumsum()
    return {3: coupons * sums[years - 1] + discounts[years - 1]}


def bond_yields(case: ReferenceCase) -> dict[int, Any]:
    years, coupons, prices = case.args[0], case.args[1].astype(float), case.args[2].astype(float)
    low, high = np.full(years.shape, -0.9), np.full(years.shape, 3.0)
    year = np.arange(1, years.max() + 1)
    flows = np.where(year <= years[:, None], coupons[:, None], 0) + (year == years[:, None])
    for _ in range(60):
        middle = (low + high) / 2
        is_over = (flows * (1 + middle[:, None]) ** -year).sum(1) > prices
        low, high = np.where(is_over, middle, low), np.where(is_over, high, middle)
    return {3: Expected(values=low, rtol=1e-3, atol=1e-5)}


def explicit_local(case: ReferenceCase) -> dict[int, Any]:
    start, _, factor, steps = case.args
    grid = start.reshape(-1, case.defines["POINTS"]).astype(float)
    for _ in range(steps):
        grid[:, 1:-1] += factor * (grid[:, :-2] - 2 * grid[:, 1:-1] + grid[:, 2:])
    return {1: grid}


def implicit_thomas(case: ReferenceCase) -> dict[int, Any]:
    right, _, _, off, points, count = case.args
    is_interleaved = bool(case.defines["INTERLEAVED"])
    systems = right.reshape(points, count) if is_interleaved else right.reshape(count, points).T
    matrix = np.diag(np.full(points, 1 - 2 * float(off)))
    matrix += np.diag(np.full(points - 1, float(off)), 1) + np.diag(np.full(points - 1, float(off)), -1)
    solution = np.linalg.solve(matrix, systems.astype(float))
    factors = np.zeros(points)
    for row in range(points):
        factors[row] = off / (1 - 2 * off - off * (factors[row - 1] if row else 0))
    factors = np.broadcast_to(factors[:, None], (points, count))
    return {1: factors if is_interleaved else factors.T, 2: solution if is_interleaved else solution.T}


REFERENCES: dict[str, Callable[[ReferenceCase], dict[int, Any]]] = {
    "black_scholes": black_scholes,
    "black_scholes_vector": black_scholes,
    "black_scholes_greeks": black_scholes_greeks,
    "black_scholes_fp64": black_scholes_fp64,
    "binomial_local": binomial_local,
    "binomial_private": binomial_private,
    "pi_atomic": pi_atomic,
    "pi_groups": pi_groups,
    "european_paths": european_paths,
    "european_group": european_group,
    "asian_paths": asian_paths,
    "heston_paths": heston_paths,
    "asian_stored": asian_stored,
    "barrier_stored": barrier_stored,
    "box_muller": box_muller,
    "polar_method": polar_method,
    "inverse_normal": inverse_normal,
    "bridge_global": bridge_global,
    "bridge_local": bridge_local,
    "walk_until_exit": walk_until_exit,
    "walk_many": walk_many,
    "implied_newton": implied_newton,
    "implied_bisection": implied_bisection,
    "halton_points": halton_points,
    "sobol_points": sobol_points,
    "weyl_integral": weyl_integral,
    "moving_average": moving_average,
    "exponential_average": exponential_average,
    "max_drawdown": max_drawdown,
    "covariance_pairs": covariance_pairs,
    "bond_values": bond_values,
    "bond_yields": bond_yields,
    "explicit_local": explicit_local,
    "implicit_thomas": implicit_thomas,
}
