"""The handbook as a site: all of it is in its folder, and its search works from files."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Where a page would fetch something from, as opposed to where it leads.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Fetches(HTMLParser):
    """What a page fetches."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        where = dict(attributes).get(FETCHED.get(tag))
        if where and dict(attributes).get("rel") not in ("canonical", "next", "prev"):
            self.found.append(where)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as its reader would; a link that leads nowhere ends it."""
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_a_site_fetches_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        found = Fetches(page.read_text()).found
        # What is seen of the search for such things, and that a report asks for nothing.
        assert bool(found) == (page.name != "report_of_digits.html"), page.name
        for where in found:
            assert not re.match(r"(\w+:)?//", where), (page.name, where)
            if page.name != "404.html":  # whose links are of the server's root
                assert (page.parent / where.partition("#")[0].partition("?")[0]).exists(), where
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text()), style


@pytest.mark.slow
def test_every_page_of_the_handbook_is_found_from_the_first(site):
    first = (site / "index.html").read_text()
    pages = [*(ROOT / "docs").glob("*.md")]
    assert pages
    for page in pages:
        assert f'href="{page.stem}.html"' in first, page
    assert "pixel_3_1" in (site / "notebook.html").read_text()  # with what its cells showed


@pytest.mark.slow
def test_the_search_of_a_site_works_from_files(site):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium: .ci/run installs it")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    command = [chromium, *options, "--dump-dom", f"{site.as_uri()}/index.html?q=butterflies"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert re.search(r"[1-9]\d* matching documents", done.stdout)
