import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hcpf.data.id_files import read_ids, write_ids
from hcpf.errors import ModelError


def test_text_ids_keep_the_order_of_a_file_whose_dictionary_has_another(tmp_path):
    path, indices = tmp_path / "ids.parquet", [2, 0, 3, 1]
    column = pa.DictionaryArray.from_arrays(indices, ["b", "ä", "", "a b"])
    parquet.write_table(pa.table({"id": column}), path)
    assert read_ids(path, 4, ModelError).tolist() == ["", "b", "a b", "ä"]


@pytest.mark.parametrize("ids", [["x", "y", "10"], [3, 1, 2], []])
def test_ids_come_back_as_they_were_written(ids, tmp_path):
    path = tmp_path / "ids.parquet"
    write_ids(path, np.array(ids, dtype=object if ids else np.int64), ModelError)
    assert read_ids(path, len(ids), ModelError).tolist() == ids


def test_missing_id_is_refused(tmp_path):
    path = tmp_path / "ids.parquet"
    parquet.write_table(pa.table({"id": ["x", None]}), path)
    with pytest.raises(ModelError, match="more than once"):
        read_ids(path, 2, ModelError)
