"""Dates and times as files have them."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from hcpf.data.times import parse_moment, parse_times
from hcpf.errors import InputError


@pytest.mark.parametrize(
    ("texts", "second"),
    [
        (["2010-12-01 08:26:00", "2011-01-13 09:05:00"], "2011-01-13T09:05"),
        (["2010-12-01T08:26:00Z", "2011-01-13T09:05:00Z"], "2011-01-13T09:05"),
        (["1.12.2010 08:26", "13.1.2011 9:05"], "2011-01-13T09:05"),
        (["13/12/2010", "2/1/2011"], "2011-01-02"),
        (["12/13/2010 8:26", "1/2/2011 9:05"], "2011-01-02T09:05"),
        (["01-Dec-2010", "13-Jan-2011"], "2011-01-13"),
        (["978300760", "978300761"], "2000-12-31T22:12:41"),
    ],
)
def test_texts(texts, second):
    times = parse_times("when", [pa.array([*texts, None, " "])])
    assert times[1] == np.datetime64(second, "s")
    assert np.isnat(times).tolist() == [False, False, True, True]


def test_typed_columns():
    assert parse_times("when", [pa.array([datetime.date(2011, 10, 1)])])[0] == np.datetime64(
        "2011-10-01", "s"
    )
    stamps = pa.array([datetime.datetime(2011, 10, 1, 7, 30)], pa.timestamp("ns"))
    assert parse_times("when", [stamps, stamps])[1] == np.datetime64("2011-10-01T07:30", "s")
    millis = parse_times("when", [pa.array([978300760000, None])])
    assert millis[0] == np.datetime64("2000-12-31T22:12:40", "s")
    assert np.isnat(millis[1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["3/4/2011", "1/2/2011"], r"two ways \(%d/%m/%Y or %m/%d/%Y\)"),
        (["yesterday", "2011-01-01"], "cannot be read, such as 'yesterday'"),
        ([2010, 2011], "numbers that are not times, such as 2010"),
    ],
)
def test_what_cannot_be_read(values, message):
    with pytest.raises(InputError, match=message):
        parse_times("when", [pa.array(values)])


@pytest.mark.parametrize("text", ["tomorrow", "2011-13-01", "1.10.2011", "2011"])
def test_a_moment_is_a_date(text):
    assert parse_moment("2011-10-01 14:30") == np.datetime64("2011-10-01T14:30", "s")
    with pytest.raises(InputError, match=f"'{text}' is not a date"):
        parse_moment(text)
