"""Draws from a density of some dozen dimensions: Hamiltonian Monte Carlo.

Chains start from the normal approximation at the mode and move in its units, so that a few steps of
each suffice (Neal 2011, *MCMC using Hamiltonian dynamics*, sections 5.2 to 5.4). All chains move
together, as rows of an array.
"""

from collections.abc import Callable

import numpy as np

from modwatch.statistics.arguments import Floats

#: Returns the logarithm (d,) of a density, up to a constant, at d points (d, p), and its slope
#: (d, p) there; (d, q) are what is held fixed at each.
Density = Callable[[Floats, Floats], tuple[Floats, Floats]]

#: Rounds of a chain that are left out, and kept; steps of a round, and their size at first.
_WARM_UP, _KEPT, _STEPS, _STEP = 15, 16, 6, 0.28
#: Share of accepted rounds that the size of the steps aims at.
_ACCEPTED = 0.75
#: Points about the mode from which the chains start, by their density, and their standard
#: deviation.
_STARTS, _SPREAD = 300, 0.8
#: Least curvature along any direction.
_LEAST_CURVATURE = 0.3
_DIFFERENCE = 1e-3


def draws(
    density: Density, start: Floats, fixed: Floats, generator: np.random.Generator, size: int
) -> Floats:
    """Return draws of a density: `size` with each of what is held `fixed` (e, q), (e · size, p).

    `start` (p,) is where the mode is searched from.

    >>> generator, nothing = np.random.default_rng(0), np.empty((1, 0))
    >>> at = draws(
    ...     lambda at, _: (-(at**2).sum(1) / 2, -at), np.ones(3), nothing, generator, 1000)
    >>> bool(abs(at.mean()) < 0.1), bool(abs(at.std() - 1) < 0.1)
    (True, True)
    """
    modes, roots = map(np.stack, zip(*(_mode(density, start, one) for one in fixed), strict=True))

    def at(place: Floats) -> tuple[Floats, Floats, Floats]:
        """Return points (e, c, p), their density (e, c), and the slope (e, c, p) in `place`."""
        point = modes[:, None] + place @ roots
        held = np.repeat(fixed, place.shape[1], axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # a step too long, which is not accepted
            value, slope = density(point.reshape(-1, start.size), held)
            return point, value.reshape(point.shape[:2]), slope.reshape(point.shape) @ roots

    place = _SPREAD * generator.standard_normal((len(fixed), _STARTS, start.size))
    likely = at(place)[1] + (place**2).sum(axis=2) / (2 * _SPREAD**2)
    place = _chosen(place, likely, generator, chains=-(-size // _KEPT))
    point, value, slope = at(place)
    step, kept = _STEP, []
    for number in range(_WARM_UP + _KEPT):
        length = step * np.exp(generator.uniform(-0.4, 0.4))
        speed = generator.standard_normal(place.shape)
        energy = value - (speed**2).sum(axis=2) / 2
        moved, pull = place, slope
        for _ in range(_STEPS):
            speed = speed + length / 2 * pull
            moved = moved + length * speed
            new_point, new_value, pull = at(moved)
            speed = speed + length / 2 * pull
        with np.errstate(over="ignore", invalid="ignore"):
            gain = new_value - (speed**2).sum(axis=2) / 2 - energy
        gain = np.where(np.isfinite(gain), gain, -np.inf)
        accepted = np.log(generator.random(gain.shape)) < gain
        if number < _WARM_UP:
            step *= np.exp(0.3 * (np.exp(np.minimum(gain, 0)).mean() - _ACCEPTED))
        place, point, slope = (
            np.where(accepted[..., None], new, old)
            for new, old in ((moved, place), (new_point, point), (pull, slope))
        )
        value = np.where(accepted, new_value, value)
        if number >= _WARM_UP:
            kept.append(point)
    found = np.concatenate(kept, axis=1)
    order = generator.permutation(found.shape[1])[:size]
    return np.asarray(found[:, order].reshape(-1, start.size))


def _chosen(
    place: Floats, likely: Floats, generator: np.random.Generator, *, chains: int
) -> Floats:
    """Return places (e, chains, p) drawn from each of `place` (e, n, p) by log-weights (e, n)."""
    likely = np.where(np.isfinite(likely), likely, -np.inf)
    weight = np.exp(likely - likely.max(axis=1, keepdims=True))
    drawn = [
        mine[generator.choice(len(mine), chains, p=of_mine / of_mine.sum())]
        for mine, of_mine in zip(place, weight, strict=True)
    ]
    return np.stack(drawn)


def _mode(density: Density, start: Floats, fixed: Floats) -> tuple[Floats, Floats]:
    """Return the mode (p,), and the root (p, p) of the inverse of the curvature there.

    The symmetric root: others depend on the sign of eigenvectors and on their choice where
    eigenvalues are equal, and so on the processor.
    """
    from scipy.optimize import minimize

    def descent(at: Floats) -> tuple[float, Floats]:
        value, slope = density(at[None], fixed[None])
        return -float(value[0]), -slope[0]

    found = minimize(descent, start, jac=True, method="BFGS", options={"gtol": 1e-2})
    step = _DIFFERENCE * np.eye(start.size)
    held = np.repeat(fixed[None], start.size, axis=0)
    up, down = (density(found.x + sign * step, held)[1] for sign in (1, -1))
    curvature = (down - up) / (2 * _DIFFERENCE)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    return found.x, vectors / np.sqrt(np.maximum(values, _LEAST_CURVATURE)) @ vectors.T
