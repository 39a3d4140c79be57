"""The notebooks run, and show what they are kept with."""

import re
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# And what stands between columns of them. What a model's file holds is of the machine, too.
NUMBER = re.compile(r"\b[0-9a-f]{12,64}\b|[-+]?\d+([.,]\d+)*(e-?\d+)?|\s+")


def shown(cell):
    """What a cell shows, without its numbers: these are of versions of libraries."""
    texts = []
    for one in cell.get("outputs", []):
        assert one["output_type"] in ("stream", "execute_result"), one
        assert one.get("name") != "stderr", one
        data = one.get("data", {"text/plain": one.get("text")})
        # What scikit-learn draws of an estimator is of its version.
        kinds = {kind: text for kind, text in data.items() if "sk-" not in "".join(text)}
        texts.append({kind: NUMBER.sub("0", "".join(text)) for kind, text in kinds.items()})
    return texts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda one: one.name)
def test_notebooks_show_what_they_are_kept_with(path, tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    shutil.copy(EXAMPLES / "digits.csv", tmp_path)
    kept = nbformat.read(path, 4)
    found = nbformat.read(path, 4)
    client = nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": tmp_path}})
    client.execute()
    cells = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [shown(cell) for cell in kept.cells] == [shown(cell) for cell in found.cells]
