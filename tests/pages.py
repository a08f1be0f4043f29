"""The code on README.md and the pages of docs/, and how the tests run it."""

import importlib.util
import re
from pathlib import Path

import pytest

from hcpf import Interactions, datasets

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_NEEDED = {"single-cell": ("anndata", "pandas"), "money": ("polars",), "quickstart": ("polars",)}
_STEP = 20  # of the customers of the bundled data, one in so many is kept


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


def run(page):
    """Run the blocks of a page one after another, as a reader would type them."""
    for package in _NEEDED.get(page.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    namespace = {"__name__": "page"}
    for number, block in enumerate(python_blocks(page)):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


def with_fewer_customers(monkeypatch):
    """Make the bundled data smaller: the code stays as it is, and fits take seconds."""
    whole = datasets.retail

    def retail(*arguments):
        data = whole(*arguments)
        rows = slice(None, None, _STEP)
        return Interactions.from_matrix(data.matrix[rows], users=data.users[rows], items=data.items)

    monkeypatch.setattr(datasets, "retail", retail)


def cases(pages):
    """Each page with fewer customers; as it stands, too, where it shows the bundled data."""
    found = []
    for page in pages:
        found.append(pytest.param(page, False, id=page.stem))
        if any("retail(" in block for block in python_blocks(page)):
            slow = pytest.param(page, True, id=f"{page.stem} in full", marks=pytest.mark.slow)
            found.append(slow)
    return found
