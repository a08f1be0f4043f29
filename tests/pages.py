"""The code on README.md and the pages of docs/, and how the tests run it.

``python tests/pages.py docs/quickstart.md ...`` writes the output of the code into the pages.
"""

import contextlib
import importlib.util
import io
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from hcpf import Interactions, datasets

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_NEEDED = {
    "single-cell": ("anndata", "pandas"),
    "money": ("polars",),
    "posterior": ("arviz", "pandas"),
    "scanpy": ("scanpy",),
    "quickstart": ("polars",),
}
_STEP = 20  # of the customers of the bundled data, one in so many is kept
_TOLERANCE = 0.02  # relative, of the numbers that a page shows
_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.M | re.S)
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def python_blocks(page):
    return [code for code, _ in _BLOCK.findall(page.read_text())]


def outputs(page):
    """Run the blocks of a page in turn; yield code, printed output and shown output."""
    namespace = {"__name__": "page"}
    for number, (code, shown) in enumerate(_BLOCK.findall(page.read_text())):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)
        lines = [line.rstrip() + "\n" for line in printed.getvalue().splitlines()]
        yield code, "".join(lines), shown


def write_outputs(page):
    """Replace the outputs that a page shows by those of its code."""
    text = page.read_text()
    for code, printed, _ in outputs(page):
        block = f"```python\n{code}```\n"
        start = text.index(block) + len(block)
        rest = re.sub(r"\A\n```text\n.*?^```\n", "", text[start:], flags=re.M | re.S)
        text = text[:start] + (f"\n```text\n{printed}```\n" if printed else "") + rest
    page.write_text(text)


def commands(page):
    """Return the hcpf command lines of a page, from blocks and from inline code, with arguments."""
    text = page.read_text()
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", text, flags=re.M | re.S))
    inline = re.findall(r"`(hcpf [a-z][^`]*)`", text)
    lines = [line for line in blocks.splitlines() if line.startswith("hcpf ")] + inline
    return [line.split(" | ")[0].split(" \\|")[0] for line in lines if "COMMAND" not in line]


def run(page, *, compare_output=True):
    """Run a page, and compare what its code prints with what it shows."""
    for package in _NEEDED.get(page.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    for code, printed, shown in outputs(page):
        where = f"{page.name} shows another output (python tests/pages.py {page}): {code[:60]}"
        assert bool(printed) == bool(shown), where
        if compare_output:
            check_output(printed, shown, where)


def check_output(printed, shown, where):
    """Texts must agree, and numbers up to what another processor may change."""
    assert re.sub(r"\s+", " ", _NUMBER.sub("#", printed)) == re.sub(
        r"\s+", " ", _NUMBER.sub("#", shown)
    ), where
    found, expected = (
        np.array([float(text.replace(",", "")) for text in _NUMBER.findall(output)])
        for output in (printed, shown)
    )
    np.testing.assert_allclose(found, expected, rtol=_TOLERANCE, atol=0.005, err_msg=where)


def with_fewer_customers(page, monkeypatch):
    """Make the bundled data smaller: the code stays as it is, and fits take seconds."""
    whole = datasets.retail
    named = [int(text) for text in re.findall(r"\b1[2-8]\d{3}\b", "".join(python_blocks(page)))]

    def retail(*arguments):
        data = whole(*arguments)
        rows = np.isin(data.users, named)
        rows[::_STEP] = True
        return Interactions.from_matrix(data.matrix[rows], users=data.users[rows], items=data.items)

    monkeypatch.setattr(datasets, "retail", retail)


def shows_bundled_data(page):
    return any("retail(" in block for block in python_blocks(page))


def cases(pages):
    """Each page with fewer customers; as it stands, too, where it shows the bundled data."""
    found = []
    for page in pages:
        found.append(pytest.param(page, False, id=page.stem))
        if shows_bundled_data(page):
            slow = pytest.param(page, True, id=f"{page.stem} in full", marks=pytest.mark.slow)
            found.append(slow)
    return found


if __name__ == "__main__":
    for argument in map(Path, sys.argv[1:]):
        shown = argument.resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            write_outputs(shown)
