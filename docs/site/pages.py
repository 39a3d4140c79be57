"""What the site has besides the files of ``docs/``: a hook of mkdocs.

Pages are written to be read in the repository. Here the README is the first page, the notebook a
page with its outputs, and results of benchmarks pages too. A link to a file that is no page, such
as a program, becomes its name.
"""

from __future__ import annotations

import json
import posixpath
import re
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from mkdocs.structure.files import File, Files

import sqlkrp

ROOT = Path(__file__).parents[2]
RESULTS = "benchmarks/results"
#: What is a page of the site, though it stands outside of docs/.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/table_to_model.ipynb": "notebook.md",
}
#: A report as the handbook describes it, made with the site.
REPORT = "report_of_digits.html"
# Of a page; what is code is left as it is.
LINK = re.compile(
    r"(?P<code>^```.*?^```|`[^`\n]*`)|(?<!\\)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
IMAGE = re.compile(r'(?P<before><img [^>]*src=")(?P<to>[^"]+)')


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand elsewhere, and links between all of them."""
    sources = places()
    for source, page in sources.items():
        if source.startswith("docs/"):
            continue
        path = ROOT / source
        if path.suffix == ".png":
            files.append(File.generated(config, page, abs_src_path=str(path)))
        else:
            text = notebook(path) if path.suffix == ".ipynb" else path.read_text()
            files.append(File.generated(config, page, content=linked(text, source, sources)))
    files.append(File.generated(config, REPORT, content=report()))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Links out of docs/, and to what is only in the site."""
    if page.file.generated_by:
        return text
    if page.file.src_uri == "report.md":
        text += f"\n[A report of the digits' first map]({REPORT}) is such a page.\n"
    return linked(text, f"docs/{page.file.src_uri}", places() | {f"docs/{REPORT}": REPORT})


def report() -> str:
    """The page of a map of examples/digits.csv, with no seconds, which are of a machine."""
    digits = pd.read_csv(ROOT / "examples" / "digits.csv").drop(columns="label")
    krp = sqlkrp.KRP(2, 200, random_state=0).fit(digits)
    with sqlkrp.connect() as database:
        database.connection.register("digits", digits)
        page: str = database.report(krp, "digits", timed=False).html
    return page


def places() -> dict[str, str]:
    """Where a file of the repository is in the site."""
    found = {f"docs/{path.name}": path.name for path in (ROOT / "docs").glob("*.[ms][dv]*")}
    for path in sorted((ROOT / RESULTS).iterdir()):
        if path.suffix in (".md", ".png"):
            found[f"{RESULTS}/{path.name}"] = f"results/{path.name}"
    return found | PAGES


def linked(text: str, source: str, places: dict[str, str]) -> str:
    """A page's text with its links as they are in the site."""
    here = PurePosixPath(source).parent
    there = PurePosixPath(places[source]).parent

    def target(to: str) -> str | None:
        path, hash_, anchor = to.partition("#")
        if not path or "://" in path:
            return to
        place = places.get(posixpath.normpath(str(here / path)))
        return place and posixpath.relpath(place, there) + hash_ + anchor

    def link(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found[0]
        to = target(found["to"])
        return found["text"] if to is None else f"[{found['text']}]({to})"

    def image(found: re.Match[str]) -> str:
        return found["before"] + (target(found["to"]) or found["to"])

    return IMAGE.sub(image, LINK.sub(link, text))


def notebook(path: Path) -> str:
    """A notebook's cells, and below each what it showed."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        parts.append(f"```python\n{text}\n```" if is_code else text)
        parts += [output(one) for one in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def output(shown: dict[str, Any]) -> str:
    """A table as a table. Pictures of estimators bring styles of their own: their text is here."""
    data = shown.get("data", {"text/plain": shown.get("text", "")})
    table = "".join(data.get("text/html", ""))
    if table and "sk-" not in table:
        return f'<div class="output">{one_block(table)}</div>'
    return f'<pre class="output">{escape("".join(data["text/plain"]), quote=False)}</pre>'


def one_block(html: str) -> str:
    """HTML that Markdown leaves alone: with no empty line, at which it would begin again."""
    return re.sub(r"\n\s*", "\n", html.strip())
