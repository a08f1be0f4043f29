"""The page on evaluation runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evaluation.md"


def test_the_code_of_the_page_runs(capsys):
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    assert "binary hpf" in capsys.readouterr().out
