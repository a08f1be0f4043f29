"""The documentation builds without a warning, and the examples on its pages work."""

import html
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import hcpf
import pages
from hcpf import datasets, elements, errors, evaluate
from hcpf.cli.app import app
from pages import DOCS, ROOT

_SKETCHES = DOCS / "architecture.md"  # its code shows interfaces and does not run
WITH_CODE = [
    ROOT / "README.md",
    *sorted(p for p in DOCS.rglob("*.md") if pages.python_blocks(p) and p != _SKETCHES),
]
WITH_COMMANDS = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("howto/*.md"))]


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
    for page in WITH_CODE[1:]:
        assert "<article" in built_pages[page.relative_to(DOCS).with_suffix(".html")]
    # One test for all of these, since a build takes seconds.
    check_mathematics_needs_no_scripts(built_pages)
    check_reference_is_complete("".join(built_pages.values()))
    check_reference_has_the_true_defaults(built_pages)


def check_mathematics_needs_no_scripts(built_pages):
    assert built_pages[Path("mathematics.html")].count("<math") > 20
    for name, text in built_pages.items():
        for raw in (":math:", ".. math::", 'class="arithmatex"'):
            assert raw not in text, (name, raw)
        assert not re.findall(r'<(?:script|link)[^>]*(?:src|href)="https?://', text), name


def check_reference_has_the_true_defaults(built_pages):
    for page, function in (("model", hcpf.HCPF), ("data", hcpf.simulate)):
        text = built_pages[Path(f"api/{page}.html")].partition(f'id="hcpf.{function.__name__}"')[2]
        shown = {
            name: html.unescape(default)
            for name, default in re.findall(
                r"<b><code>(\w+)</code></b>[^–]*?default:\s*<code>(.*?)</code>", text
            )[::-1]  # the first ones count: other functions follow
        }
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not parameter.empty:
                assert shown[name].replace('"', "'") == repr(parameter.default), name


def check_reference_is_complete(shown):
    for module in (hcpf, datasets, elements, evaluate):
        for name in module.__all__:
            if callable(getattr(module, name)):
                assert f'id="{module.__name__}.{name}"' in shown, name
    for name in vars(errors):
        if name.endswith("Error"):
            assert f'id="hcpf.errors.{name}"' in shown, name


@pytest.mark.parametrize(("page", "in_full"), pages.cases(WITH_CODE))
def test_code_on_the_page_runs(page, in_full, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not in_full:
        pages.with_fewer_customers(page, monkeypatch)
    pages.run(page, compare_output=in_full or not pages.shows_bundled_data(page))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_commands_on_the_page_have_known_options(page):
    for line in pages.commands(page):
        command, words = get_command(app), shlex.split(line, comments=True)[1:]
        while hasattr(command, "resolve_command"):
            context = command.make_context("hcpf", words, resilient_parsing=True)
            name, command, words = command.resolve_command(context, words)
            assert command is not None, (line, name)
        known = {name for option in command.params for name in option.opts + option.secondary_opts}
        unknown = {word for word in words if re.match(r"--?[a-zA-Z]", word)} - known
        assert not unknown, line
