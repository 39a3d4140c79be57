"""What sums of the wide form share, as columns of their own: partial sums, and pairs of factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from sqlkrp.sql.levels import Levels
from sqlkrp.sql.sharing import Circuit, Layer, Pairs
from sqlkrp.sql.vectors import Vector

__all__ = ["terms_of_pairs", "written_circuit"]


def written_circuit(
    levels: Levels, circuit: Circuit, values: Vector, constants: Sequence[float]
) -> Vector:
    """Sums of a circuit: a SELECT for each of its layers, then the sums of what these hold."""
    terms = circuit.terms.tolist()
    # Sums that are columns of the last layer only give these their names.
    is_named = circuit.is_named and not any(constants)
    names = {place: f"h{i}" for i, place in enumerate(terms)} if is_named else {}
    below: Sequence[str] = values
    for depth, layer in enumerate(circuit.layers):
        is_last = depth == len(circuit.layers) - 1
        below = _layer(levels, layer, below, f"b{depth}_", names if is_last else {})
    if is_named:
        return Vector((below[place - 1] for place in terms), is_named=True)
    sums = []
    for (first, last), constant in zip(pairwise(circuit.starts.tolist()), constants, strict=True):
        plus = [below[place - 1] for place in terms[first:last] if place > 0]
        minus = [below[-place - 1] for place in terms[first:last] if place < 0]
        sums.append(levels.sum_of(plus, minus, constant))
    return levels.named(sums, "h")


def _layer(
    levels: Levels, layer: Layer, below: Sequence[str], prefix: str, names: Mapping[int, str]
) -> Sequence[str]:
    """The columns of a layer; some have names, by their places from 1."""
    pairs = zip(layer.first.tolist(), layer.second.tolist(), strict=True)
    items = {
        names.get(place, f"{prefix}{place - 1}"): _pair(*pair, below)
        for place, pair in enumerate(pairs, start=1)
    }
    # All hyperplanes may be all zero.
    return list(levels.level(items).values()) if items else below


def _pair(first: int, second: int, values: Sequence[str]) -> str:
    """One column of a layer."""
    if not second:
        return values[first - 1]
    return f"{values[first - 1]} {'+' if second > 0 else '-'} {values[abs(second) - 1]}"


def terms_of_pairs(levels: Levels, pairs: Pairs, values: Vector) -> list[list[str]]:
    """Terms where many products of two factors are in more than one: each computed once."""
    single = sorted(set(pairs.others.ravel().tolist()))
    products = {f"q{i}": f"{values[a]} * {values[b]}" for i, (a, b) in enumerate(pairs.pairs)}
    above = levels.level(products | {f"h{i}": values[i] for i in single})
    return [
        [
            " * ".join([above[f"q{pair}"], *(above[f"h{i}"] for i in others)])
            for pair, others in zip(pairs_of, others_of, strict=True)
        ]
        for pairs_of, others_of in zip(pairs.place.tolist(), pairs.others.tolist(), strict=True)
    ]
