"""A report on a fitted model: one HTML file for readers who know the data, not the mathematics.

Examples
--------
>>> import tempfile
>>> from pathlib import Path
>>> from hcpf import HCPF, simulate
>>> from hcpf.report import write_report
>>> data = simulate(30, 20, density=0.2, random_state=0).interactions
>>> model = HCPF(2, max_iter=5, n_fits=1, random_state=0).fit(data)
>>> with tempfile.TemporaryDirectory() as folder:
...     path = write_report(model, Path(folder) / "report.html")
...     "<title>" in path.read_text(encoding="utf-8")
True
"""

from hcpf.report.writing import write_report

__all__ = ["write_report"]
