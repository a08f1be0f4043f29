"""Whatever is wrong with a file, the reader says so in an InputError that names it."""

import gzip
import os
import zipfile

import pytest

from datasets.published_formats import FORMATS, GENES, MERCK
from hcpf import datasets
from hcpf.errors import InputError

READERS = sorted({one.reader for one in FORMATS})

WRONG = {
    "empty": b"",
    "blank line": b"\n",
    "prose": b"It was the best of times, it was the worst of times.\nAnd so on.\n",
    "html": b"<!DOCTYPE html><html><head><title>404: Not found</title></head></html>\n",
    "other table": b"alpha,beta\n1,2\n",
    "json": b'{"a": 1}\n',
    "json list": b"[1, 2, 3]\n",
    "bytes": bytes(range(256)) * 10,
}


@pytest.mark.parametrize("reader", READERS)
def test_other_content(reader, tmp_path):
    path = tmp_path / "mistaken.txt"
    for content in WRONG.values():
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"mistaken\.txt: .*Expected .+\."):
            getattr(datasets, reader)(path)


@pytest.mark.parametrize("reader", READERS)
def test_wrong_paths_and_duplicates(reader, tmp_path):
    read = getattr(datasets, reader)
    with pytest.raises(InputError, match=r"absent.*no such file.*Expected"):
        read(tmp_path / "absent.csv")
    with pytest.raises(InputError, match=r"there is no .* in it.*Expected"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"a path is needed, got int.*Expected"):
        read(3)
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.md", "x")
    with pytest.raises(InputError, match=r"other\.zip: there is no .* in it\. Expected"):
        read(path)
    # Refused before the file is even looked for.
    with pytest.raises(InputError, match="duplicates must be one of error, sum"):
        read(tmp_path / "absent", duplicates="first")


@pytest.mark.parametrize("reader", READERS)
def test_broken_packing(reader, tmp_path):
    for ending in (".gz", ".bz2", ".xz", ".zip", ".tar", ".tar.gz"):
        path = tmp_path / f"broken{ending}"
        path.write_bytes(b"this is not packed at all, whatever its name may say" * 20)
        with pytest.raises(InputError, match=r"broken.*Expected"):
            getattr(datasets, reader)(path)


@pytest.mark.parametrize("one", FORMATS, ids=str)
def test_packed_file_cut_short(one, tmp_path):
    path = tmp_path / f"{one.name}.gz"
    noise = os.urandom(3000).hex()
    path.write_bytes(gzip.compress((one.text + noise).encode(one.encoding))[:-1500])
    with pytest.raises(InputError, match="Expected"):
        getattr(datasets, one.reader)(path, **one.options)


LATER = [
    ("movielens", "196\t242\t3\t881250949\n186\t302\tfive\t891717742\n", "five"),
    ("movielens", "1::1193::5::978300760\n2::661::3\n", "columns"),
    ("movielens", "userId,movieId,rating,timestamp\n", "no rows"),
    ("bookcrossing", '"User-ID";"ISBN";"Book-Rating"\n"1";"2";"0"\n', "no rows"),
    ("netflix", "1,3,2005-09-06\n1:\n", "before the first film"),
    ("netflix", "1:\n8,3\n", "columns"),
    ("netflix", "1:\n8,x,2005-09-06\n", "x"),
    ("netflix", "1:\n", "no rows"),
    ("netflix", "1:\n8,3,2005-09-06\n\n\n9,3,2005-09-06\n", "no id"),
    ("yelp",
     '{"user_id": "a", "business_id": "b", "stars": 3}\n{"user_id":\n', "line 2 is not JSON"),
    ("yelp", '{"user_id": "a", "stars": 3}\n', "line 1 has no 'business_id'"),
    ("yelp", '{"user_id": "a", "business_id": "b", "stars": "many"}\n', "line 1 is not"),
    ("yelp", '{"user_id": "a", "business_id": "b", "stars": NaN}\n', "no value in row 1"),
    ("wordpress_likes", '{"uid": "1", "likes": 3}\n', "line 1 is not"),
    ("wordpress_likes", '{"uid": "1", "likes": [{"post_id": 1}]}\n', "line 1 has no 'blog'"),
    ("wordpress_likes", '{"uid": "1", "likes": []}\n', "no rows"),
    ("amazon_fine_foods", "product/productId: B1\nreview/userId: A\n", "last block has no value"),
    ("amazon_fine_foods", "product/productId: B1\nproduct/productId: B1\n", "line 2"),
    ("amazon_fine_foods",
     "product/productId: B1\nreview/userId: A\nreview/score: x\n", "line 3 is not"),
    ("tencent", "1\t2\t-1\t9\n", "no rows"),
    ("echonest", "a\tb\t1\na\tb\n", "columns"),
    ("donations", "donor,recipient,price\na,b,1\n", "no column is named like the amount"),
    ("donations", "donor,recipient,amount\na,b,much\n", "much"),
    ("donations", "donor;recipient;amount\na;b;12,50\n", "12,50"),
    ("donorschoose", "donationid,projectid\nd,p\n", "donor_acctid"),
    ("merck", MERCK + "ACT1_M_2,1.0,3\n", "columns"),
    ("merck", MERCK + "ACT1_M_2,1.0,3,,1\n", "a field is empty"),
    ("merck", "MOLECULE,Act\nACT1_M_2,1.0\n", "no columns of values"),
    ("merck", "MOLECULE,Act,D_1\nACT1_M_2,1.0,0\n", "no rows"),
    ("merck", "MOLECULE,Act,D_1,D_1\nACT1_M_2,1.0,0,1\n", "same name"),
    ("geuvadis", GENES + "gene\tx\t1\t2\tnothing\t1\n", "nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "text", "reason"), LATER)
def test_wrong_further_down(reader, text, reason, tmp_path):
    path = tmp_path / "file.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"(?si)file\.txt: .*{reason}.*Expected .+\."):
        getattr(datasets, reader)(path)


def test_two_candidates_in_a_folder(tmp_path):
    for name in ("ml-1m", "ml-10m"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ratings.dat").write_text("1::2::3::4\n")
    with pytest.raises(InputError, match="more than one such file"):
        datasets.movielens(tmp_path)


@pytest.mark.parametrize(
    ("reader", "options"),
    [
        ("bookcrossing", {"kind": "both"}),
        ("steam", {"behavior": "^play$"}),
        ("lastfm", {"artist": "id"}),
        ("wordpress_likes", {"item": "author"}),
        ("tencent", {"rejected": "yes"}),
        ("retail", {"value": "pence"}),
    ],
)
def test_options_are_checked(reader, options, tmp_path):
    arguments = [] if reader == "retail" else [tmp_path]
    with pytest.raises(InputError, match=next(iter(options))):
        getattr(datasets, reader)(*arguments, **options)


def test_columns_of_donations_are_checked(tmp_path):
    path = tmp_path / "gifts.csv"
    path.write_text("donor,recipient,amount\na,b,1\n")
    with pytest.raises(InputError, match=r"donor='who' is not a column; the columns are \['donor'"):
        datasets.donations(path, donor="who")
    with pytest.raises(InputError, match="different columns"):
        datasets.donations(path, donor="recipient")
