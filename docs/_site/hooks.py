"""What the site does beyond mkdocs: mathematics without scripts, and tables of results."""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
_DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.S)
_DIRECTIVE = re.compile(r"<p>\.\. math::(.*?)</p>", re.S)
_ROLE = re.compile(r":math:<code>(.*?)</code>", re.S)
_LINK = re.compile(r"<code>([^<]*?) &lt;(https?:[^<]*?)&gt;</code>_")
_FUNCTION = re.compile(r"(<mi>(?:log|exp)</mi>)(?=<mi|<msub|<mo>&#x02211;|<mover|<munder)")
_RESULTS = "<!-- results -->"


def on_page_content(content: str, **_: Any) -> str:
    """Turn LaTeX into MathML, which browsers draw by themselves, online or not."""
    for display in (_DISPLAY, _DIRECTIVE):  # the second of each is how docstrings write it
        content = display.sub(lambda found: _mathml(found[1], "block"), content)
    for inline in (_INLINE, _ROLE):
        content = inline.sub(lambda found: _mathml(found[1], "inline"), content)
    return _LINK.sub(r'<a href="\2">\1</a>', content)


def _mathml(latex: str, display: str) -> str:
    found = convert(html.unescape(latex).strip(), display=display)
    found = found.replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")  # a relation, not a letter
    return _FUNCTION.sub(r'\1<mspace width="0.17em" />', found)


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
