"""The page on reports runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "report.md"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    assert capsys.readouterr().out.startswith("report.html ")
    assert (tmp_path / "calibration.svg").exists()
