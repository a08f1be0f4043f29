"""The documentation builds without a warning, and the code on its pages runs."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hcpf
import pages
from hcpf import datasets, elements, errors, evaluate
from pages import DOCS, ROOT

# The code on the others is run by the tests of what they describe.
PAGES = [
    DOCS / "index.md", DOCS / "quickstart.md", DOCS / "mathematics.md", DOCS / "faq.md",
    DOCS / "inference.md", DOCS / "varying.md", DOCS / "elements.md",
    *sorted((DOCS / "howto").glob("*.md")),
]  # fmt: skip


def test_site_builds_strictly(tmp_path):
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    built_pages = {
        page.relative_to(tmp_path): page.read_text() for page in tmp_path.rglob("*.html")
    }
    for page in PAGES:
        assert "<article" in built_pages[page.relative_to(DOCS).with_suffix(".html")]
    # Once for all of these, since a build takes seconds.
    check_mathematics_needs_no_scripts(built_pages)
    check_reference_is_complete("".join(built_pages.values()))


def check_mathematics_needs_no_scripts(pages):
    assert pages[Path("mathematics.html")].count("<math") > 20
    for name, text in pages.items():
        for raw in (":math:", ".. math::", 'class="arithmatex"'):
            assert raw not in text, (name, raw)
        assert not re.findall(r'<(?:script|link)[^>]*(?:src|href)="https?://', text), name


def check_reference_is_complete(shown):
    for module in (hcpf, datasets, elements, evaluate):
        for name in module.__all__:
            if callable(getattr(module, name)):
                assert f'id="{module.__name__}.{name}"' in shown, name
    for name in vars(errors):
        if name.endswith("Error"):
            assert f'id="hcpf.errors.{name}"' in shown, name


@pytest.mark.parametrize(("page", "in_full"), pages.cases([ROOT / "README.md", *PAGES]))
def test_code_on_the_page_runs(page, in_full, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not in_full:
        pages.with_fewer_customers(monkeypatch)
    pages.run(page)
    assert capsys.readouterr().out.strip()
