"""The wide form's first stage: the columns of a source as numbers, prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import balanced, firm_cast, quote, soft_cast, text
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Prepare

__all__ = ["casts", "prepared"]


def prepared(levels: Levels, stage: Prepare) -> Vector:
    """The inputs as numbers: cast, with missing values treated, held, moved and scaled."""
    constant = [] if stage.constant is None else [levels.literal(stage.constant)]
    values: Sequence[str]
    if stage.nulls == "error" and not levels.job.guard:
        values = casts(levels, stage, firm_cast)
    else:
        values = levels.named(casts(levels, stage, soft_cast), "x")
        values = _treated(levels, stage, values)
        constant = [levels.if_complete(value) for value in constant]
    values = [
        _shifted(levels, value, float(shift), float(scale))
        for value, shift, scale in zip(
            _held(levels, stage, values), stage.shift, stage.scale, strict=True
        )
    ]
    if stage.unit_length:
        return _unit_length(levels, values, constant)
    return levels.named([*values, *constant], "x")


def casts(levels: Levels, stage: Prepare, cast: Callable[..., str]) -> list[str]:
    """The columns of the source as numbers, by one of the casts of names."""
    job = levels.job
    return [
        cast(
            quote(name, job.dialect),
            job.dtype,
            job.dialect,
            boolean=name in job.booleans,
            single=name in job.singles,
        )
        for name in stage.columns
    ]


def _treated(levels: Levels, stage: Prepare, values: Sequence[str]) -> list[str]:
    """What is read where a value is missing."""
    finite = [levels.dialect.finite(value, stage.dtype) for value in values]
    if stage.nulls == "propagate":
        complete = f"CASE WHEN {balanced(finite, ' AND ')} THEN 1 ELSE 0 END"
        inputs = {f"x{i}": value for i, value in enumerate(values)}
        above = levels.level({"complete": complete, **inputs})
        levels.complete = True
        return [levels.if_complete(above[name]) for name in inputs]
    if stage.fills:
        otherwise = [levels.literal(float(fill)) for fill in stage.fill]
    else:
        otherwise = [
            levels.dialect.error(
                text(f"missing value in column {name}", levels.dialect),
                value,
                levels.job.type_name,
            )
            for name, value in zip(stage.told, values, strict=True)
        ]
    return [
        f"CASE WHEN {test} THEN {value} ELSE {instead} END"
        for test, value, instead in zip(finite, values, otherwise, strict=True)
    ]


def _held(levels: Levels, stage: Prepare, values: Sequence[str]) -> Sequence[str]:
    """Values inside their bounds."""
    if not stage.bounds:
        return values
    low, high = (bound.astype(stage.dtype).tolist() for bound in stage.bounds)
    values = levels.named(values, "x")
    return [
        levels.held(value, least, most) if held else value
        for value, least, most, held in zip(values, low, high, stage.held.tolist(), strict=True)
    ]


def _shifted(levels: Levels, value: str, shift: float, scale: float) -> str:
    if shift:
        value = f"({value} - {levels.literal(shift)})"
    return f"{value} * {levels.literal(scale)}" if scale != 1 else value


def _unit_length(levels: Levels, values: Sequence[str], constant: Sequence[str]) -> Vector:
    named = levels.named([*values, *constant], "x")
    # In double precision, as squares leave the range of single precision soon.
    doubles = named[: len(values)]
    if levels.job.dtype != "float64":
        doubles = [levels.cast(value, "float64") for value in doubles]
    squares = balanced([f"{value} * {value}" for value in doubles], " + ")
    columns = {f"x{i}": value for i, value in enumerate(named)}
    length = {"length": levels.cast(f"SQRT({squares})")}
    above = list(levels.level(length | columns).values())[1:]
    # A row of zeros has no direction: it stays a row of zeros.
    scaled = [
        f"CASE WHEN length = 0 THEN {value} ELSE {value} / length END"
        for value in above[: len(values)]
    ]
    return levels.named([*scaled, *above[len(values) :]], "x")
