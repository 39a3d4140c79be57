"""The head of a report: what it is of, and the few numbers that matter most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.report.found import Agreement, Found
from sqlkrp.report.pieces import is_rounding, measure, percent, plain, sentence
from sqlkrp.report.text import Html, brief, element, joined, shortened

__all__ = ["headline"]

# Of a mean that has moved so far, in its standard deviations, the head tells.
_FAR = 1.0
# Columns of new texts that it names.
_NAMED = 3
# How a training says that no map was taken.
_KEPT = ", which is not more than its standard error: they are kept"
_ON_COLUMNS = " on the columns alone"


def headline(found: Found) -> Html:
    """What it is, and in a sentence how good."""
    return joined(
        element("p", f"sqlkrp {found.kind} on {shortened(found.table, 80)}", class_="over"),
        element("h1", shortened(_name(found), 300)),
        element("p", element("code", shortened(found.title, 600)), class_="note")
        if _name(found) != found.title
        else "",
        element("p", "digest ", element("code", found.digest), class_="note"),
        element("p", _lead(found), class_="lead"),
        _no_longer(found),
        _tiles(found),
        element("p", _of_what(found), class_="note"),
    )


def _name(found: Found) -> str:
    """What it is called: what was trained has a name in few words."""
    if not found.training:
        return found.title
    short = found.shortening
    return brief(found.training["taken"]) + ("" if short is None else f", {short.title}")


def _lead(found: Found) -> str:
    if found.distances is not None:
        own = found.distances.measured
        if is_rounding(own.draws[0].mean):
            return "Squared distances are exact but for rounding."
        return (
            f"Squared distances are within {percent(own.draws[0].mean)} on average, nine in ten "
            f"within {percent(own.draws[0].quantiles[0.9])}; the floor for {own.components:,} "
            f"features is {percent(own.floor)}."
        )
    if found.training and found.shortening is not None:
        return (
            f"This is {found.shortening.title}. What the others add: {found.shortening.error}. "
            "What it is worth on rows that it has not seen nobody has measured: what is told of "
            "its training is of the model before it was shortened."
        )
    if found.training:
        return _taken(found.training)
    return f"{counted(found.n_features, 'feature')} of {counted(len(found.inputs), 'input')}."


def _taken(training: Mapping[str, Any]) -> str:
    """Why it was taken, as a sentence."""
    why = training["taken_because"]
    if training["taken"] != training["raw"]:
        return sentence(brief(why))
    name, gains, gain = why.removesuffix(_KEPT).rpartition(" gains ")
    if not gains:  # nothing else was tried
        return f"The columns alone are kept: {brief(why)}."
    gain = gain.removesuffix(_ON_COLUMNS)
    return f"The columns alone are kept: the best map beside them, {brief(name)}, gained {gain}."


def _no_longer(found: Found) -> Html:
    """What is no longer as it was where it was made, and so far that all else depends on it."""
    moved = {one.name: abs(one.moved or 0.0) for one in found.inputs if not found.is_small}
    far = sorted((name for name in moved if moved[name] > _FAR), key=lambda one: -moved[one])
    lines = []
    if far:
        told = (
            f"{shortened(far[0], 80)} has moved by {plain(moved[far[0]], 3)} standard deviations "
            f"since the {found.kind} was made"
        )
        others = counted(len(far) - 1, "other input")
        lines.append(f"{told}, and {others} by more than 1." if len(far) > 1 else f"{told}.")
    lines += [
        f"{shortened(name, 80)} holds texts that are not read, in {percent(share)} of the rows."
        for name, share in found.unread[:_NAMED]
    ]
    lines += [
        f"{shortened(name, 80)} holds texts that the {found.kind} does not know."
        for name, count in found.of_two[:_NAMED]
        if count > 2
    ]
    return joined(*(element("p", one, class_="bad") for one in lines))


def _of_what(found: Found) -> str:
    asked = found.wanted.asked
    whole = "all of them" if found.sample == found.rows else f"drawn with the seed {asked.seed}"
    return (
        f"Measured in {found.engine} on {counted(found.sample, 'row')}, {whole}; what is said of "
        f"the whole table is of {counted(found.rows, 'row')}. This page holds aggregates, and none "
        f"of the rows. sqlkrp {found.version}." + _not_measured(found)
    )


def _not_measured(found: Found) -> str:
    """Of a model, where distances would be no more than a remark."""
    if found.kind != "model" or found.distances is not None:
        return ""
    return f" Distances are not measured: {found.without_distances}."


def _tiles(found: Found) -> Html:
    """The few numbers that matter most."""
    given = [("rows", f"{found.rows:,}", shortened(found.table, 60))]
    inputs = f"of {counted(len(found.inputs), 'input')}"
    given.append(("features", f"{found.n_features:,}", inputs))
    if found.distances is not None:
        own = found.distances.measured
        if is_rounding(own.draws[0].mean):
            given.append(("squared distances", "exact", "but for rounding, this map"))
        else:
            given += [
                ("squared distances within", percent(own.draws[0].mean), "on average, this map"),
                ("floor", percent(own.floor), "2/√(πk), whatever the data"),
            ]
    given += _told_of_training(found.training, found.shortening is not None)
    if found.agreement is not None and found.agreement.measures:
        name, value = found.agreement.measures[0]
        rows = f"{counted(_labelled(found.agreement), 'row')}; it may have been trained on them"
        if not math.isfinite(value):
            rows = f"{counted(_labelled(found.agreement), 'row')}, whose labels are all the same"
        given.append((f"{measure(name)}, this table", plain(value), rows))
    if found.verification is not None:
        off = max((relative for _, _, relative in found.verification.worst(1)), default=0.0)
        given.append(("SQL against NumPy", f"{off:.1g}", "largest relative difference"))
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, element("small", more)))
            for name, value, more in given
        ),
        class_="tiles",
    )


def _labelled(told: Agreement) -> int:
    """The rows that measures are of."""
    return told.rows - told.unlabelled - told.unknown


def _told_of_training(
    training: Mapping[str, Any] | None, is_short: bool
) -> list[tuple[str, str, str]]:
    if not training:
        return []
    judged, where = training["held_out"], "rows held out"
    if judged is None:
        judged, where = training["in_folds"], "rows in folds"
    value = judged.get(training["metric"])
    told = "unknown" if value is None else plain(value)
    rows = f"{counted(judged['rows'], 'row')} it had not seen"
    if is_short:
        where, rows = f"{where}, before it was shortened", "of the model with all of its terms"
    return [(f"{measure(training['metric'])}, {where}", told, rows)]
