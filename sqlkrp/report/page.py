"""A report: one page that needs nothing but itself."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlkrp.display import Shown
from sqlkrp.errors import ParameterError
from sqlkrp.files import write_whole
from sqlkrp.report.distance_charts import curve_chart
from sqlkrp.report.found import Found
from sqlkrp.report.headline import headline
from sqlkrp.report.look import STYLE
from sqlkrp.report.of_columns import columns
from sqlkrp.report.of_distances import distances
from sqlkrp.report.of_scores import scores
from sqlkrp.report.of_sql import again, cost, verification
from sqlkrp.report.of_training import training
from sqlkrp.report.pieces import percent
from sqlkrp.report.text import Html, element, joined, shortened

__all__ = ["LARGEST", "Report"]

#: Bytes of the largest page.
LARGEST = 300_000

#: The sections behind the headline, in their order.
SECTIONS = (distances, training, scores, cost, columns, verification, again)

# Of what a page might load or run: nothing; and styles of its own.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Report(Shown):
    """What was found of a map or a model on a table, as a page of HTML."""

    def __init__(self, found: Found) -> None:
        self.found = found
        """What the page says, as plain values."""

    @cached_property
    def html(self) -> str:
        """The page."""
        found = self.found
        head = joined(
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="referrer" content="no-referrer">'),
            element("title", f"{found.kind} {found.digest[:12]} on {shortened(found.table, 80)}"),
            element("style", Html(STYLE)),
        )
        body = element("main", headline(found), *(section(found) for section in SECTIONS))
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the page, whole or not at all; over one that is there on request."""
        written = self.html.encode()
        if len(written) > LARGEST:  # names and counts are cut, so this takes a fault
            raise ParameterError(
                f"the page would have {len(written):,} bytes, and at most {LARGEST:,} are sent: "
                "this is a fault of sqlkrp, please report it"
            )
        with write_whole(Path(path), replace=replace) as part:
            part.write_bytes(written)

    def _facts(self) -> dict[str, Any]:
        found = self.found
        facts: dict[str, Any] = {
            "kind": found.kind,
            "rows": found.rows,
            "sample": found.sample,
            "bytes": len(self.html.encode()),
        }
        if found.distances is not None:
            own = found.distances.measured
            facts |= {"distortion": percent(own.draws[0].mean), "floor": percent(own.floor)}
        return facts

    def _repr_html_(self) -> str:
        """The facts, and the chart of distances: a small version of the page."""
        table = super()._repr_html_()
        if self.found.distances is None:
            return table
        # A notebook has no colours of the page's, and shows several reports beside each other.
        chart = curve_chart(self.found.distances).replace("curve-", f"c{self.found.digest[:8]}-")
        return f'{table}<div style="max-width:500px;{_IN_NOTEBOOK}">{chart}</div>'


#: Colours that are read on white and on black.
_IN_NOTEBOOK = ";".join((
    "--ink:currentColor", "--paper:transparent", "--muted:#808890", "--line:#80889055",
    "--c1:#2a8fd0", "--c2:#d97a00", "--c3:#009e73",
))  # fmt: skip
