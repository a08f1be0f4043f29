"""Kernels on several threads: every range once, errors, nested and forked processes."""

import multiprocessing
import sys
import threading
import time

import numpy as np
import pytest

import hcpf
from hcpf import HCPF
from hcpf.core import threads
from hcpf.core.threads import kernel_threads, run_in_parallel
from hcpf.errors import ParameterError

DEFAULT = threads.MOST_THREADS


@pytest.fixture
def four_threads(monkeypatch):
    monkeypatch.setattr(threads, "MOST_THREADS", 4)
    threads._pool.cache_clear()
    with kernel_threads(4):
        yield
    threads._pool.cache_clear()


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 17, 1000])
def test_every_place_is_visited_once(four_threads, size):
    visits, who = np.zeros(size, np.int64), set()

    def visit(first, last, visits):
        who.add(threading.get_ident())
        time.sleep(0.1 / np.clip(size, 1, 16))  # the others wake up, on a busy machine too
        visits[first:last] += 1

    run_in_parallel(visit, size, visits)
    assert np.all(visits == 1)
    assert (len(who) > 1) == (size > 1)


def test_little_work_wakes_nobody(four_threads):
    who = []
    run_in_parallel(
        lambda first, last: who.append((threading.get_ident(), first, last)), 8, work=10.0
    )
    assert who == [(threading.get_ident(), 0, 8)]


@pytest.mark.parametrize(("work", "n_ranges"), [(1e8, 16), (1e9, 50), (1e12, 128)])
def test_much_work_is_divided_into_more_ranges(four_threads, work, n_ranges):
    ranges = []
    run_in_parallel(lambda first, last: ranges.append((first, last)), 1000, work=work)
    assert len(ranges) == n_ranges
    ranges.sort()
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges[:-1])]
    assert ranges[-1][1] == 1000


@pytest.mark.parametrize("bad", [0, 7])
def test_an_error_on_any_thread_reaches_the_caller(four_threads, bad):
    def fail(first, last):
        time.sleep(0.002)
        if first <= bad < last:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run_in_parallel(fail, 8)
    run_in_parallel(lambda first, last: None, 8)


def test_after_an_error_no_thread_is_still_at_work(four_threads):
    begun, everyone, done = [], threading.Barrier(4, timeout=30), []

    def work(first, last):
        begun.append(first)
        everyone.wait()
        if threading.current_thread().name == "hcpf_0":
            raise ZeroDivisionError
        time.sleep(0.2 * (threading.current_thread() is not threading.main_thread()))
        done.append(first)

    with pytest.raises(ZeroDivisionError):
        run_in_parallel(work, 4)
    assert len(done) == len(begun) - 1 == 3


def test_the_number_of_threads_is_restored_after_an_error(four_threads):
    def fail():
        with kernel_threads(1):
            seen.append(threads._chosen.get())
            raise ValueError("inner")

    seen = []
    with kernel_threads(2):
        with pytest.raises(ValueError, match="inner"):
            fail()
        seen.append(threads._chosen.get())
    assert seen == [1, 2]


def test_a_limit_holds_for_fits_and_what_a_model_answers(four_threads, monkeypatch):
    data = hcpf.simulate(40, 30, density=0.2, random_state=0).interactions
    model = HCPF(2, element="gamma", n_fits=1, max_iter=2, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "_WORTH_WAKING", 0.0)
        patch.setattr(threads, "_pool", lambda: pytest.fail("another thread was asked for"))
        with hcpf.threads(1):
            model.fit(data, progress=False)
            assert len(model.recommend("all", 2)) == 80
            model.fold_in(data.matrix)
        with pytest.raises(pytest.fail.Exception, match="another thread"):
            model.fit(data, progress=False)


@pytest.mark.parametrize("n", [0, None, 1.5])
def test_a_limit_is_at_least_one_thread(n):
    with pytest.raises(ParameterError, match="n must be an integer, 1 or more"):
        hcpf.threads(n)


def test_the_number_of_threads_is_the_calling_threads_own(four_threads):
    seen = []
    with kernel_threads(1):
        other = threading.Thread(target=lambda: seen.append(threads._chosen.get()))
        other.start()
        other.join()
    assert seen == [DEFAULT]


def _fit(data):
    fitted = HCPF(3, element="gamma", max_iter=2, random_state=0).fit(data, progress=False)
    return fitted.history_[-1].elbo


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own(monkeypatch):
    monkeypatch.setattr(threads, "_WORTH_WAKING", 0.0)
    data = hcpf.simulate(60, 40, density=0.1, random_state=0).interactions
    here = _fit(data)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_fit, (data,)).get(timeout=60) == here


def test_a_helper_that_is_late_is_not_waited_for(monkeypatch):
    busy, done = threading.Event(), threading.Event()
    monkeypatch.setattr(threads, "MOST_THREADS", 2)
    threads._pool.cache_clear()
    threads._pool().submit(lambda: busy.set() or done.wait(30))
    busy.wait(30)
    visits = []
    with kernel_threads(2):
        run_in_parallel(lambda first, last: visits.append((first, last)), 8)
    assert not done.is_set()
    assert [first for first, _ in visits] == list(range(8))
    done.set()
    threads._pool.cache_clear()
