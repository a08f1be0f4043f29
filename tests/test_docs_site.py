"""The documentation builds without a warning, and the code on its pages runs."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# The code on the others is run by the tests of what they describe.
PAGES = [
    DOCS / "index.md", DOCS / "quickstart.md", DOCS / "mathematics.md", DOCS / "faq.md",
    DOCS / "inference.md", *sorted((DOCS / "howto").glob("*.md")),
]  # fmt: skip
NEEDED = {"single-cell": ("anndata", "pandas"), "money": ("polars",), "quickstart": ("polars",)}


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    target = tmp_path_factory.mktemp("docs") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", target],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return target


def test_site_builds_strictly(site):
    for page in [*PAGES, DOCS / "benchmarks.md", DOCS / "api" / "model.md"]:
        html = (site / page.relative_to(DOCS).with_suffix(".html")).read_text()
        assert "<article" in html
        assert "stub" not in html


def test_mathematics_is_drawn_without_scripts(site):
    assert (site / "mathematics.html").read_text().count("<math") > 20
    for page in site.rglob("*.html"):
        text = page.read_text()
        for raw in (":math:", ".. math::", 'class="arithmatex"'):
            assert raw not in text, (page.name, raw)
        assert not re.findall(r'<(?:script|link)[^>]*(?:src|href)="https?://', text), page.name


def test_reference_shows_every_public_name(site):
    import hcpf
    from hcpf import datasets, elements, errors, evaluate

    shown = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    for name in set(hcpf.__all__) - {"__version__", "datasets", "elements", "errors", "evaluate"}:
        assert f'id="hcpf.{name}"' in shown, name
    missing = [
        f"{module.__name__}.{name}"
        for module in (datasets, elements, evaluate)
        for name in module.__all__
        if f'id="{module.__name__}.{name}"' not in shown
    ]
    assert not missing
    for name in vars(errors):
        if name.endswith("Error"):
            assert f'id="hcpf.errors.{name}"' in shown, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_the_page_runs(page, capsys, tmp_path, monkeypatch):
    for package in NEEDED.get(page.stem, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for number, block in enumerate(python_blocks(page)):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)
    assert capsys.readouterr().out.strip()
