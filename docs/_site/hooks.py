"""What the site does beyond mkdocs: mathematics without scripts, and tables of results."""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
_DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.S)
_ROLE = re.compile(r":math:<code>(.*?)</code>", re.S)
_RESULTS = "<!-- results -->"


def on_page_content(content: str, **_: Any) -> str:
    """Turn LaTeX into MathML, which browsers draw by themselves, online or not."""
    content = _DISPLAY.sub(lambda found: _mathml(found[1], "block"), content)
    for inline in (_INLINE, _ROLE):  # the second is how docstrings write it
        content = inline.sub(lambda found: _mathml(found[1], "inline"), content)
    return content


def _mathml(latex: str, display: str) -> str:
    return convert(html.unescape(latex).strip(), display=display)


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Put the files of docs/results, if there are any, where a page asks for them."""
    if _RESULTS not in markdown:
        return markdown
    files = sorted((Path(config["docs_dir"]) / "results").glob("*.md"))
    return markdown.replace(_RESULTS, "\n\n".join(map(_included, files)) or "No results yet.")


def _included(file: Path) -> str:
    parts = re.split(r"^(```.*?^```$)", file.read_text(), flags=re.M | re.S)
    for place in range(0, len(parts), 2):  # what stands between blocks of code
        text = re.sub(r"^(#+ )", r"##\1", parts[place], flags=re.M)
        parts[place] = re.sub(r"(\]\()(?![a-z]+:|[#/])", r"\1results/", text)
    return "".join(parts)
