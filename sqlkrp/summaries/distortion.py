"""What a person reads about distortion: each map's error beside what is possible, and its curve."""

from __future__ import annotations

from collections.abc import Iterator

from sqlkrp.errors import visible
from sqlkrp.maps.advice import counted
from sqlkrp.quality.measured import Distortion, Measured
from sqlkrp.summaries.lines import aligned, table_lines

__all__ = ["distortion_lines"]


def distortion_lines(found: Distortion) -> list[str]:
    """Each map in a few lines, and which rows that is of."""
    pairs = [("rows", f"{found.rows:,}, drawn with the seed {found.seed}")]
    lines = aligned(pairs)
    for one in found.maps:
        lines += ["", *aligned(list(_pairs(one)))]
        if one.curve:
            lines += ["", *_curve_lines(one)]
    return lines


def _pairs(one: Measured) -> Iterator[tuple[str, str]]:
    first = one.draws[0]
    yield "map", f"{one.title}, {one.digest[:12]}"
    yield "kernel", f"{one.kernel} of its columns as it prepares them"
    yield "pairs", f"{first.pairs - first.zero:,}, and {first.zero:,} at distance 0 left out"
    of_all = f" over {counted(len(one.draws), 'draw')}" if len(one.draws) > 1 else ""
    spread = f" ± {one.std:.4f}" if of_all else ""
    yield "distortion", f"{one.mean:.4f}{spread}{of_all}; this map {first.mean:.4f}"
    yield "floor", f"{one.floor:.4f}, 2/√(πk) of k = {one.components:,} features{_times(one)}"
    if one.predicted is not None:
        yield "predicted", f"{one.predicted:.4f}, by theory for these rows"
    shares = ", ".join(
        f"{share:.0%} of pairs within {one.quantile(share):.4f}" for share in (0.5, 0.9, 0.99)
    )
    yield "quantiles", shares
    yield "bias", f"{one.average('bias'):+.4f} of a squared distance"
    error, frobenius = one.average("kernel_error"), one.average("frobenius")
    if error is None:
        yield "kernel error", "none: inner products are of the kernel as it is centred"
    else:
        yield (
            "kernel error",
            f"{error:.4g}, with its sign {one.average('kernel_bias'):+.4g}; of the matrix "
            f"{frobenius:.4f} in the Frobenius norm",
        )


def _times(one: Measured) -> str:
    return f"; distortion is {one.mean / one.floor:.2f} times that"


def _curve_lines(one: Measured) -> list[str]:
    rows = [
        (f"{step.components:,}", f"{step.mean:.4f}", f"{step.std:.4f}", f"{step.floor:.4f}")
        for step in one.curve
    ]
    lines = table_lines(("features", "distortion", "±", "floor"), rows)
    if len(one.curve) > 1:
        lines.append(
            "more features still help"
            if one.enough is None
            else f"more than {one.enough:,} features hardly help"
        )
    return [visible(line) for line in lines]
