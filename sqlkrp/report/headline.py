"""The head of a report: what it is of, and the few numbers that matter most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.report.found import Agreement, Found
from sqlkrp.report.pieces import measure, percent, plain, sentence
from sqlkrp.report.text import Html, brief, element, joined, shortened

__all__ = ["headline"]


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
        return sentence(brief(found.training["taken_because"]))
    return f"{counted(found.n_features, 'feature')} of {counted(len(found.inputs), 'input')}."


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
        given += [
            ("squared distances within", percent(own.draws[0].mean), "on average, this map"),
            ("floor", percent(own.floor), "2/√(πk), whatever the data"),
        ]
    given += _told_of_training(found.training, found.shortening is not None)
    if found.agreement is not None and found.agreement.measures:
        name, value = found.agreement.measures[0]
        rows = counted(_labelled(found.agreement), "row")
        if not math.isfinite(value):
            rows = f"{rows}, whose labels are all the same"
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
