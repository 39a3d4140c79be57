"""Linear classifiers by the losses of logistic regression and of linear SVMs, over passes of rows.

A pass is expensive, as all features are computed again in it, so each one tries several steps
along the way that the one before it chose, with the loss and its slope at all of them. Where the
second derivatives fit into memory the way is Newton's; elsewhere it is that of L-BFGS, which
starts from a matrix that all classes share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sqlkrp.engines.session import Work
from sqlkrp.stages import Array
from sqlkrp.stages.closing import sigmoid
from sqlkrp.training.definite import factor, solved
from sqlkrp.training.moments import Fit

__all__ = ["Batch", "Loss", "LossFit", "Passes", "fit_loss", "here", "logistic", "squared_hinge"]

#: Rows of features, of each row the place of its class, and how much it counts.
Batch = tuple[Array, Array, "Array | None"]

# Second derivatives of more numbers than these (160 MB) are not kept.
_NEWTON_NUMBERS = 20_000_000
# Shares of the proposed step. The first is where second derivatives are taken.
_STEPS = (1.0, 2.0, 0.5, 0.2, 0.05)
# Of the start. Squares of indicators, for one, are small for logistic regression.
_MULTIPLES = (1.0, 2.0, 4.0, 0.5, 0.2, 0.0)
# Products of no more features than these are written out.
_FEW_FEATURES = 32
# After these many passes, and in the first, the shared matrix is computed anew.
_REFRESHED = (2, 5, 10, 20, 40)
# Steps that L-BFGS remembers.
_REMEMBERED = 20
_RETRIES = 4
# Objectives that differ by less, as a share, differ by rounding.
_SAME = 1e-13


@dataclass(frozen=True, eq=False)
class LossFit(Fit):
    """A linear classifier: one decision for two classes, else one a class."""

    passes: int = 0
    converged: bool = True


@dataclass(frozen=True)
class Loss:
    """A row's loss, from its decisions.

    ``values(decisions, codes)`` is of decisions (rows, steps, problems, decisions a problem) and
    gives losses (rows, steps, problems) and slopes like the decisions. ``curvature`` is of
    decisions (rows, problems, decisions) and gives second derivatives (rows, problems, decisions,
    decisions). Problems share no weights, and each finds its own step.
    """

    name: str
    shape: Callable[[int], tuple[int, int]]
    """How many problems there are for this many classes, and how many decisions in each."""
    values: Callable[[Array, Array], tuple[Array, Array]]
    curvature: Callable[[Array, Array], Array]


def _logistic_values(decisions: Array, codes: Array) -> tuple[Array, Array]:
    if decisions.shape[-1] == 1:
        truths = codes[:, None, None, None]
        slopes = sigmoid(decisions) - truths
        return (np.logaddexp(0, decisions) - truths * decisions)[..., 0], slopes
    rows = np.arange(len(codes))
    slopes = decisions - decisions.max(axis=-1, keepdims=True)
    own = slopes[rows, ..., codes]
    np.exp(slopes, out=slopes)
    sums = slopes.sum(axis=-1)
    slopes /= sums[..., None]
    slopes[rows, ..., codes] -= 1
    return np.log(sums) - own, slopes


def _logistic_curvature(decisions: Array, codes: Array) -> Array:
    if decisions.shape[-1] == 1:
        second = sigmoid(decisions)
        bends: Array = second * (1 - second)
        return bends[..., None]
    shares = np.exp(decisions - decisions.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    result: Array = -shares[..., None] * shares[..., None, :]
    np.einsum("...ii->...i", result)[...] += shares
    return result


def _sides(decisions: Array, codes: Array) -> Array:
    """1 for a row's own class and -1 for others, over all but the steps."""
    problems = decisions.shape[-2]
    own = codes[:, None] == (np.arange(problems) if problems > 1 else 1)
    shape = (len(codes), *(1,) * (decisions.ndim - 3), problems, 1)
    return np.where(own, 1.0, -1.0).reshape(shape)


def _hinge_values(decisions: Array, codes: Array) -> tuple[Array, Array]:
    sides = _sides(decisions, codes)
    missing = np.maximum(1 - sides * decisions, 0)
    return missing[..., 0] ** 2, -2 * sides * missing


def _hinge_curvature(decisions: Array, codes: Array) -> Array:
    inside = _sides(decisions, codes) * decisions < 1
    return np.where(inside, 2.0, 0.0)[..., None]


logistic = Loss(
    "logistic",
    lambda n_classes: (1, 1 if n_classes == 2 else n_classes),
    _logistic_values,
    _logistic_curvature,
)
squared_hinge = Loss(
    "squared-hinge",
    lambda n_classes: (1 if n_classes == 2 else n_classes, 1),
    _hinge_values,
    _hinge_curvature,
)


#: Does work over batches of all rows, and gives what it finds, added up.
Passes = Callable[[Work], Iterator[Any]]


def here(batches: Callable[[], Iterable[Batch]]) -> Passes:
    """Passes in this process, over batches that are given anew each time."""
    return lambda work: work.added(work.over(iter(batches())))


def fit_loss(
    loss: Loss,
    passes: Passes,
    n_features: int,
    n_classes: int,
    penalty: float,
    scaling: tuple[Array, Array],
    start: Fit | None = None,
    tolerance: float = 1e-8,
    max_passes: int = 100,
) -> LossFit:
    """The classifier of least mean loss + penalty / 2 · |coef of standardised features|².

    ``scaling`` has the means and deviations that features are standardised by; a feature with
    deviation 0 gets no weight. Intercepts are not penalised. Behind a ``StandardScaler`` it is
    scikit-learn's ``LogisticRegression(C=1 / (penalty * weight))``, with the sum of the rows'
    weights, and ``LinearSVC(C=1 / (penalty * weight))`` with an intercept that is not penalised.

    Of two classes the decision is for the second. ``passes`` does work over all batches; see
    :func:`here`. It has converged where no derivative of the objective is over ``tolerance``.
    """
    means, deviations = (np.asarray(one, np.float64) for one in scaling)
    problems, each = loss.shape(n_classes)
    scale = np.divide(1, deviations, out=np.zeros(n_features), where=deviations > 0)
    at = np.zeros((problems, each, n_features + 1))
    if start is not None:
        at[..., :-1] = (start.coef * np.where(scale > 0, deviations, 0)).reshape(at[..., :-1].shape)
        at[..., -1] = (start.intercept + start.coef @ means).reshape(problems, each)
    rows = _Rows(loss, passes, _Standardised(means, scale), penalty)
    at, count, converged = _descent(rows, at, tolerance, max_passes)
    if each > 1:
        # Adding the same to the decisions of all classes changes nothing.
        at[..., -1] -= at[..., -1].mean(axis=-1, keepdims=True)
    flat = at.reshape(problems * each, n_features + 1)
    coef = flat[:, :-1] * scale
    return LossFit(penalty, coef, flat[:, -1] - coef @ means, True, count, converged)


class _Blocks:
    """Second derivatives of every problem."""

    def __init__(self, shape: tuple[int, ...], penalty: float) -> None:
        problems, each, size = shape
        self._sums = np.zeros((problems, each, size, each, size))
        self._penalty = penalty

    def add(self, features: Array, curvature: Array, counts: Array) -> None:
        problems, each = curvature.shape[1:3]
        grams = _few_grams if features.shape[1] <= _FEW_FEATURES else _grams
        i, j = np.tril_indices(each)
        for problem in range(problems):
            blocks = grams(features, curvature[:, problem, i, j] * counts[:, None])
            sums = self._sums[problem]
            for one, other, block in zip(i.tolist(), j.tolist(), blocks, strict=True):
                sums[one, :, other] += block
                if one != other:
                    sums[other, :, one] += block

    def __iadd__(self, other: _Blocks) -> _Blocks:
        self._sums += other._sums
        return self

    def factored(self, weight: float) -> Callable[[Array], Array]:
        lowers = []
        for block in self._sums:
            size = block.shape[0] * block.shape[1]
            matrix = block.reshape(size, size) / weight
            # Intercepts are not penalised.
            inner = np.einsum("ijij->ij", matrix.reshape(block.shape))
            inner[:, :-1] += self._penalty
            lowers.append(_some_factor(matrix))

        def apply(gradient: Array) -> Array:
            pairs = zip(lowers, gradient, strict=True)
            return np.stack([solved(low, g.reshape(-1, 1)).reshape(g.shape) for low, g in pairs])

        return apply


class _Shared:
    """In place of second derivatives their mean over classes, times that over features.

    Along the former's eigenvectors each class has a curvature of its own, and nothing to do with
    the others. As many curvatures have a factor of their own as fit into memory.
    """

    def __init__(self, shape: tuple[int, ...], penalty: float) -> None:
        problems, each, size = shape
        self._features = np.zeros((size, size))
        self._classes = np.zeros((problems, each, each))
        self._penalty = penalty

    def add(self, features: Array, curvature: Array, counts: Array) -> None:
        self._classes += np.einsum("n,npij->pij", counts, curvature)
        own = np.einsum("npii->n", curvature)
        self._features += _weighted_gram(features, own * counts)

    def __iadd__(self, other: _Shared) -> _Shared:
        self._classes += other._classes
        self._features += other._features
        return self

    def factored(self, weight: float) -> Callable[[Array], Array]:
        matrix = self._features / np.einsum("pii->", self._classes)
        curvatures, directions = np.linalg.eigh(self._classes / weight)
        order = np.argsort(curvatures, axis=None)
        groups = np.array_split(order, min(len(order), max(1, _NEWTON_NUMBERS // matrix.size)))
        # With the largest of its group nothing takes too long a step.
        lowers = [self._factor(matrix, curvatures.flat[group[-1]]) for group in groups]

        def apply(gradient: Array) -> Array:
            turned = directions.transpose(0, 2, 1) @ gradient
            flat = turned.reshape(-1, gradient.shape[-1])
            for group, lower in zip(groups, lowers, strict=True):
                flat[group] = solved(lower, flat[group].T).T
            result: Array = directions @ flat.reshape(gradient.shape)
            return result

        return apply

    def _factor(self, matrix: Array, curvature: float) -> Array:
        result = matrix * max(curvature, 0.0)
        diagonal = np.einsum("ii->i", result)
        diagonal[:-1] += self._penalty
        # All intercepts together have no curvature.
        diagonal[-1] += 1e-6
        return _some_factor(result)


def _grams(features: Array, weights: Array) -> Iterator[Array]:
    """For each column of weights."""
    return (_weighted_gram(features, one) for one in weights.T)


def _few_grams(features: Array, weights: Array) -> Array:
    """The same of few features, whose products are few: all Grams are one product of these."""
    i, j = np.tril_indices(features.shape[1])
    found = np.empty((weights.shape[1], features.shape[1], features.shape[1]))
    found[:, i, j] = found[:, j, i] = weights.T @ (features[:, i] * features[:, j])
    return found


def _weighted_gram(features: Array, weights: Array) -> Array:
    """Weights that are all of one sign, of which the zeros cost nothing."""
    kept = np.flatnonzero(weights)
    sign = -1.0 if len(kept) and weights[kept[0]] < 0 else 1.0
    rows = features if len(kept) == len(features) else features[kept]
    rows = rows * np.sqrt(sign * weights[kept])[:, None]
    result: Array = sign * (rows.T @ rows)
    return result


def _some_factor(matrix: Array) -> Array:
    """The matrix's factor, or that of one nearby that has one."""
    diagonal = np.einsum("ii->i", matrix)
    added = 1e-12 * max(float(diagonal.mean()), 1e-12)
    for _ in range(10):
        if (lower := factor(matrix)) is not None:
            return lower
        diagonal += added
        added *= 100
    raise ValueError("features are not finite, or too large to be squared: scale them first")


@dataclass
class _Tried:
    """Of each step the objective of every problem, and its slopes."""

    objectives: Array
    slopes: Array
    metric: Callable[[Array], Array] | None


class _Standardised:
    """Features of deviation 1, and a last one that is 1, for intercepts."""

    def __init__(self, means: Array, scale: Array) -> None:
        self._means, self._scale = means, scale
        self._last: tuple[Array, Array] | None = None

    def __reduce__(self) -> Any:
        return _Standardised, (self._means, self._scale)

    def of(self, Z: Array) -> Array:
        """Those of rows of features."""
        if self._last is not None and self._last[0] is Z:  # the same rows again, in memory
            return self._last[1]
        features = np.empty((len(Z), Z.shape[1] + 1))
        np.subtract(Z, self._means, out=features[:, :-1])
        features[:, :-1] *= self._scale
        features[:, -1] = 1
        self._last = Z, features
        return features


@dataclass
class _Sums:
    """Of some rows, at each step the objective of every problem, and its slopes."""

    objectives: Array
    slopes: Array
    metric: Any
    """Second derivatives, as _Blocks or _Shared, if they are asked for."""
    weight: float = 0.0

    def __iadd__(self, other: _Sums) -> _Sums:
        self.objectives += other.objectives
        self.slopes += other.slopes
        if self.metric is not None:
            self.metric += other.metric
        self.weight += other.weight
        return self


@dataclass(frozen=True)
class _Trying:
    """One pass: what the objective is at some steps along a way from here."""

    loss: Loss
    features: _Standardised
    at: Array
    way: Array
    steps: Array
    flat: Callable[[], Any]
    """What second derivatives are of no rows; None where they are not asked for."""

    def over(self, rows: Iterator[Batch]) -> Iterator[_Sums]:
        """Sums over some rows."""
        shape = len(self.steps), *self.at.shape
        found = _Sums(np.zeros(shape[:2]), np.zeros(shape), self.flat())
        for batch in rows:
            self._add(found, *batch)
        yield found

    def added(self, found: Iterator[_Sums]) -> Iterator[_Sums]:
        """Sums over all rows."""
        total: _Sums | None = None
        for one in found:
            if total is None:
                total = one
            else:
                total += one
        if total is not None:  # some who add up are given nothing
            yield total

    def _add(self, found: _Sums, Z: Array, codes: Array, weights: Array | None) -> None:
        features, at = self.features.of(Z), self.at
        counts = np.ones(len(codes)) if weights is None else np.asarray(weights, np.float64)
        found.weight += float(counts.sum())
        # Decisions are linear in the step: two products do for all steps.
        ends = np.concatenate([at, self.way]).reshape(-1, at.shape[-1])
        both = (features @ ends.T).reshape(len(codes), 2, 1, *at.shape[:2])
        decisions = both[:, 0] + self.steps[:, None, None] * both[:, 1]
        losses, inner = self.loss.values(decisions, codes)
        found.objectives += np.einsum("n,ntp->tp", counts, losses)
        inner *= counts[:, None, None, None]
        found.slopes += np.tensordot(inner, features, axes=(0, 0))
        if found.metric is not None:
            found.metric.add(features, self.loss.curvature(decisions[:, 0], codes), counts)


class _Rows:
    """All rows, and what they say of weights."""

    def __init__(self, loss: Loss, passes: Passes, features: _Standardised, penalty: float) -> None:
        self._loss, self._passes = loss, passes
        self._features, self._penalty = features, penalty

    def newton(self, shape: tuple[int, ...]) -> bool:
        """Whether second derivatives fit into memory."""
        problems, each, size = shape
        return problems * (each * size) ** 2 <= _NEWTON_NUMBERS

    def tried(self, at: Array, way: Array, steps: Array, curved: bool) -> _Tried:
        """One pass: what the objective is at some steps along a way from here."""
        kind = _Blocks if self.newton(at.shape) else _Shared
        flat = partial(kind, at.shape, self._penalty) if curved else _nothing
        (found,) = self._passes(_Trying(self._loss, self._features, at, way, steps, flat))
        places = at + steps[:, None, None, None] * way
        slopes = found.slopes / found.weight
        slopes[..., :-1] += self._penalty * places[..., :-1]
        objectives = found.objectives / found.weight
        objectives += self._penalty / 2 * (places[..., :-1] ** 2).sum(axis=(2, 3))
        metric = found.metric.factored(found.weight) if curved else None
        return _Tried(objectives, slopes, metric)


def _nothing() -> None:
    """No second derivatives."""


class _History:
    """The last steps, and how the slope changed along them: what L-BFGS knows of curvature."""

    def __init__(self, remembered: int) -> None:
        self._pairs: deque[tuple[Array, Array]] = deque(maxlen=remembered)

    def keep(self, moved: Array, changed: Array) -> None:
        self._pairs.append((moved, changed))

    def directed(self, slope: Array, metric: Callable[[Array], Array]) -> Array:
        """The inverse of the second derivatives, as far as they are known, times the slope."""
        shares = []
        for moved, changed in reversed(self._pairs):
            product = _dot(moved, changed)
            inverse = np.divide(1, product, out=np.zeros_like(product), where=product > 0)
            share = inverse * _dot(moved, slope)
            shares.append((inverse, share))
            slope = slope - share * changed
        way = metric(slope)
        for (moved, changed), (inverse, share) in zip(self._pairs, reversed(shares), strict=True):
            way = way + (share - inverse * _dot(changed, way)) * moved
        return way


def _dot(one: Array, other: Array) -> Array:
    """Of each problem."""
    result: Array = (one * other).sum(axis=(1, 2), keepdims=True)
    return result


def _best(tried: _Tried) -> Array:
    """Of each problem the step of least objective; where these are the same, the flattest."""
    least = tried.objectives.min(axis=0)
    same = tried.objectives <= least + _SAME * np.abs(least)
    flatness = np.where(same, np.abs(tried.slopes).max(axis=(2, 3)), np.inf)
    result: Array = flatness.argmin(axis=0)
    return result


def _descent(rows: _Rows, at: Array, tolerance: float, max_passes: int) -> tuple[Array, int, bool]:
    """Where the objective is least, the passes it took to get there, and whether it is."""
    newton = rows.newton(at.shape)
    history = _History(_REMEMBERED)
    problems, steps = np.arange(len(at)), np.array(_STEPS)
    at, slope, objective, metric, done = _begun(rows, at)
    shrunk, failures = np.ones(len(at)), 0
    while True:
        off = np.abs(slope).max(axis=(1, 2)) > tolerance
        if not off.any() or done >= max_passes or failures > _RETRIES:
            return at, done, not off.any()
        way = -history.directed(slope, metric) * (shrunk * off)[:, None, None]
        tried = rows.tried(at, way, steps, newton or done in _REFRESHED)
        done += 1
        best = _best(tried)
        lowest = tried.objectives[best, problems]
        taken = off & (lowest <= objective + _SAME * np.abs(objective))
        moved = np.where(taken, steps[best], 0)[:, None, None] * way
        changed = np.where(taken[:, None, None], tried.slopes[best, problems] - slope, 0)
        history.keep(moved, changed)
        at, slope = at + moved, slope + changed
        objective = np.where(taken, lowest, objective)
        shrunk = np.where(off & ~taken, shrunk * 0.01, 1.0)
        failures = failures + 1 if (off & ~taken).any() else 0
        if newton and taken.any():
            if (steps[best][taken] < 1).any():
                # The first step went too far, to where the curvature is another one.
                tried = rows.tried(at, np.zeros_like(at), np.zeros(1), True)
                done += 1
            history = _History(_REMEMBERED)
        if tried.metric and taken.any():
            metric = tried.metric


def _begun(rows: _Rows, at: Array) -> tuple[Array, Array, Array, Callable[[Array], Array], int]:
    """The best multiple of the start, its slope, objective and metric, and the passes it took.

    Too large a start has rows that are all certain: there is no curvature to go on with.
    """
    multiples = np.array(_MULTIPLES if at.any() else [1.0])
    tried = rows.tried(np.zeros_like(at), at, multiples, True)
    best, problems, passes = _best(tried), np.arange(len(at)), 1
    at = at * multiples[best][:, None, None]
    if (multiples[best] < 0.5).any():
        tried = rows.tried(at, np.zeros_like(at), np.zeros(1), True)
        best, passes = np.zeros_like(best), 2
    assert tried.metric is not None
    return at, tried.slopes[best, problems], tried.objectives[best, problems], tried.metric, passes
