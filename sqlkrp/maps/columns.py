"""Names of columns: matched, with near ones where one is missing, and chosen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.source import NUMERIC, Source
from sqlkrp.spelling import near_matches
from sqlkrp.stages import is_unicode

__all__ = [
    "choose_columns",
    "label_columns",
    "match_columns",
    "match_spelling",
    "near_matches",
    "require_order",
    "spelt_in",
]

# Columns that a message names with their types.
_SHOWN_COLUMNS = 10
# The head of a file that was not taken apart may be one name.
_SHOWN_LETTERS = 60


def match_columns(wanted: Iterable[str], present: Iterable[str], where: str = "the data") -> None:
    """Raise ColumnError, with near matches, unless every wanted column is present."""
    present = list(present)
    known = set(present)
    missing = [name for name in wanted if name not in known]
    if missing:
        near = near_matches(missing[0], present)
        more = f" (and {counted(len(missing) - 1, 'more column')})" if len(missing) > 1 else ""
        raise ColumnError(f"column {missing[0]!r}{more} is not in {where}{near}")


def require_order(seen: Sequence[str], reads: Sequence[str], names: Sequence[str]) -> None:
    """Raise ColumnError unless names are those that were seen, in that order; as scikit-learn does.

    What was seen and is not read may be missing, or stand anywhere.
    """
    match_columns(reads, names)
    known, read = set(seen), set(reads)
    use = "use X[list(map.feature_names_in_)]"
    unseen = [name for name in names if name not in known]
    if unseen:
        more = f" and {counted(len(unseen) - 1, 'more column')}" if len(unseen) > 1 else ""
        raise ColumnError(
            "The feature names should match those that were passed during fit: "
            f"{unseen[0]!r}{more} unseen at fit time; {use}"
        )
    there, wanted = ([one for one in order if one in read] for order in (names, seen))
    if there not in (wanted, list(reads)):
        here, stood = next(pair for pair in zip(there, wanted, strict=True) if pair[0] != pair[1])
        raise ColumnError(
            "The feature names should match those that were passed during fit, and be in the same "
            f"order: {here!r} stands where {stood!r} stood; {use}"
        )


def match_spelling(wanted: Iterable[str], present: Iterable[str]) -> dict[str, str]:
    """Each wanted name as it is spelt among those present: exactly, or but for case."""
    names = list(present)
    found = {}
    for name in wanted:
        same = [one for one in names if one == name]
        near = same or [one for one in names if one.lower() == name.lower()]
        if len(near) > 1 and not same:
            raise ColumnError(f"column {name!r} may be any of {near!r}: name one of them")
        if not near:
            match_columns([name], names, where="the columns named")
        found[name] = near[0]
    if len(set(found.values())) < len(found):
        raise ColumnError(f"some of {list(found)!r} are one column of those named: {names!r}")
    return found


def spelt_in(present: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Those of the wanted names that are present, as they are spelt there.

    But for case, if no two names on either side differ by nothing else: warehouses fold names.
    """
    present, wanted = list(present), list(wanted)
    exact, folded = set(present), {name.lower(): name for name in present}
    others = len({name.lower() for name in wanted})
    if len(folded) < len(exact) or others < len(wanted):
        folded = {}
    near = {name: name if name in exact else folded.get(name.lower()) for name in wanted}
    return {name: spelt for name, spelt in near.items() if spelt is not None}


def label_columns(label: Any, source: Source, include: Sequence[str] | None) -> list[str]:
    """The label as a column that is no feature; of sparse rows it is in another table."""
    if label is None:
        return []
    if not isinstance(label, str):
        raise ParameterError(f"label={label!r} is not allowed: name one column")
    if label in (include or ()):
        raise ColumnError(f"column {label!r} is both included and the label: choose one")
    if not source.is_sparse:
        return [label]
    if label in source.kinds:
        raise ColumnError(f"label {label!r} is a feature of the sparse rows: exclude it there")
    return []


def choose_columns(
    source: Source,
    include: Sequence[str] | None,
    exclude: Sequence[str],
    keep: Sequence[str],
    made: Collection[str] = (),
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], dict[str, str]]:
    """The columns that a map reads, and why each of the others is left out.

    Inputs are ``made`` of some that are no numbers; ``reasons`` say why of others none are.
    """
    kinds = source.kinds
    match_columns([*exclude, *keep], kinds)
    # A feature of sparse input may have an empty name, which no column could have.
    usable = {name for name, kind in kinds.items() if (kind in NUMERIC or name in made) and name}
    if include is not None:
        columns = list(dict.fromkeys(include))
        match_columns(columns, kinds)
        unusable = [name for name in columns if name not in usable]
        if unusable:
            raise ColumnError(_unusable(unusable[0], kinds, reasons))
        both = [name for name in columns if name in exclude]
        if both:
            raise ColumnError(f"column {both[0]!r} is both included and excluded: choose one")
    else:
        usable -= {*exclude, *keep, *source.keys}
        columns = [name for name in kinds if name in usable]
    if not columns:
        raise ColumnError(
            "no numeric column is left to project: there must be at least one column of a numeric "
            "or boolean type that is neither excluded nor kept, and there "
            + _told(source, exclude, keep, reasons)
        )
    unwritten = [name for name in columns if not is_unicode(name)]
    if unwritten:
        raise ColumnError(
            f"column name {unwritten[0]!r} holds a character that is no text: rename it"
        )
    chosen = {*columns, *exclude, *keep}
    return columns, {
        name: _why_left_out(name, kind, source, reasons)
        for name, kind in kinds.items()
        if name not in chosen and (name not in usable or include is None)
    }


def _unusable(name: str, kinds: Mapping[str, str], reasons: Mapping[str, str]) -> str:
    """What is said of a column that was included, and cannot be read."""
    if name in reasons:
        return f"column {name!r} has {reasons[name]}, of which nothing is made: do not include it"
    return (
        f"column {name!r} is of type {kinds[name]}: features are numbers or booleans; cast it in a "
        "view, or do not include it (texts are read by categories='auto', dates by dates='auto')"
    )


def _told(
    source: Source, exclude: Sequence[str], keep: Sequence[str], reasons: Mapping[str, str]
) -> str:
    """The first of the columns, and why each is none to project, for the end of a message."""
    told = []
    for name, kind in [*source.kinds.items()][:_SHOWN_COLUMNS]:
        ours = {"excluded": exclude, "kept": keep}
        why = next((one for one, names in ours.items() if name in names), None)
        shown = name if len(name) <= _SHOWN_LETTERS else f"{name[:_SHOWN_LETTERS]}..."
        told.append(f"{shown!r} ({why or _why_left_out(name, kind, source, reasons)})")
    more = len(source.kinds) - len(told)
    verb = "is" if len(source.kinds) == 1 else "are"
    return f"{verb} {', '.join(told) or 'none'}" + (f" and {more:,} more" if more else "")


def _why_left_out(name: str, kind: str, source: Source, reasons: Mapping[str, str]) -> str:
    if not name:
        return "a name that is empty"
    return "a key" if name in source.keys and kind in NUMERIC else reasons.get(name, kind)
