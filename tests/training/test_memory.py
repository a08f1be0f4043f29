"""Fits that are too large for the machine are refused before they begin."""

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF
from hcpf.errors import HcpfError
from hcpf.training import memory
from hcpf.training.settings import FitPlan

SMALL = sparse.csr_array(np.array([[1.0, 0, 2.0, 0], [0, 3.0, 0, 1.0], [2.0, 0, 0, 4.0]]))


def test_a_billion_components_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**11)
    with pytest.raises(
        HcpfError, match=r"n_components=1000000000 .* 308\.0 GB .* 100\.0 GB are free"
    ):
        HCPF(10**9, random_state=0).fit(SMALL)


def test_the_estimate_counts_entries_factors_and_the_fits_that_are_kept():
    assert memory.fit_bytes(1000, (30, 20), FitPlan(10, n_fits=1)) == 16_000 + 20 * 500
    assert memory.fit_bytes(1000, (30, 20), FitPlan(10, n_fits=4)) == 16_000 + 44 * 500
    best = FitPlan(10, n_fits=4, combine="best")
    assert memory.fit_bytes(1000, (30, 20), best) == 16_000 + 20 * 500


def test_what_is_free_is_the_least_of_the_machine_and_its_control_groups(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(memory, "_machine_bytes", lambda: 5_000)
    assert memory.free_bytes() == 5_000
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("600\n")
    assert memory.free_bytes() == 5_000
    (tmp_path / "memory.max").write_text("3000\n")
    assert memory.free_bytes() == 2_400
    (tmp_path / "memory.max").unlink()
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("1000\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("1500\n")
    assert memory.free_bytes() == 0


def test_files_in_the_cache_of_a_control_group_are_free(monkeypatch, tmp_path):
    # Reading shards fills the cache up to the limit of a container.
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(memory, "_machine_bytes", lambda: 5_000)
    files = "anon 200\nfile 2700\nshmem 100\nactive_file 1600\ninactive_file 1000\n"
    for name, text in (("max", "3000"), ("current", "2990"), ("stat", files)):
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.free_bytes() == 2_610
    (tmp_path / "memory").mkdir()
    statistics = "active_file 1\ninactive_file 2\ntotal_active_file 300\ntotal_inactive_file 500\n"
    for name, text in (("limit_in_bytes", "1000"), ("usage_in_bytes", "990"), ("stat", statistics)):
        (tmp_path / "memory" / f"memory.{name}").write_text(text)
    assert memory.free_bytes() == 810


def test_nothing_is_refused_where_free_memory_is_unknown(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: None)
    assert HCPF(2, element="gamma", n_fits=1, max_iter=2).fit(SMALL).n_iter_ == 2
