"""Files and databases as tables of columns: opening and reading them batch by batch."""

from hcpf.data.files.base import FileColumn, Restart, TableFile, file_errors
from hcpf.data.files.opening import find_files, open_file

__all__ = ["FileColumn", "Restart", "TableFile", "file_errors", "find_files", "open_file"]
