"""The command line as a whole and hcpf reproduce: exit codes, messages, what is left on disk."""

import json
import os
from functools import partial

import pytest

import hcpf
from hcpf.cli.output import readable_size
from hcpf.errors import MissingDependencyError
from hcpf.experiments import figure1


@pytest.fixture
def quick(monkeypatch):
    """Stand in for the drawing, which only one test here needs to be real."""
    monkeypatch.setattr(figure1, "draw", lambda: None)
    monkeypatch.setattr(figure1, "render", lambda figure, kind: f"image {kind}".encode())


def one_line(text):
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


def test_version(run):
    result = run(["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"hcpf {hcpf.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], "reproduce"),
        (["--help"], "--install-completion"),
        (["reproduce", "--help"], "figure1"),
        (["reproduce", "figure1", "--help"], "output"),
        *(
            ([name, "--help"], f"$ hcpf {name}")
            for name in (
                "fit",
                "evaluate",
                "compare",
                "recommend",
                "predict",
                "simulate",
                "info",
                "report",
            )
        ),
    ],
)
def test_help(run, arguments, expected):
    result = run(arguments)
    assert result.exit_code == 0
    assert expected in result.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["reproduce", "figure9"], ["--nonsense"]])
def test_unknown_commands_are_usage_errors(run, arguments):
    result = run(arguments)
    assert result.exit_code == 2
    assert "No such" in result.stderr


def test_figure1_is_drawn(run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figure1, "draw", partial(figure1.draw, columns=24))
    output = tmp_path / "figure1.png"
    result = run(["reproduce", "figure1", "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert output.read_bytes().startswith(b"\x89PNG")
    size = readable_size(output.stat().st_size)
    assert one_line(result.stderr) == f"Wrote {output} ({size}).\n"


def test_default_output_is_in_the_working_folder(run, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(["reproduce", "figure1"])
    assert result.exit_code == 0
    assert (tmp_path / "figure1.png").read_bytes() == b"image png"


@pytest.mark.parametrize("name", ["a.png", "a.PNG", "a.pdf", "a.svg"])
def test_format_follows_the_name(run, quick, tmp_path, name):
    result = run(["reproduce", "figure1", "-o", str(tmp_path / name)])
    assert result.exit_code == 0
    assert (tmp_path / name).read_bytes() == f"image {name[-3:].lower()}".encode()


def test_overwriting_is_announced(run, quick, tmp_path):
    output = tmp_path / "figure1.png"
    output.write_bytes(b"old")
    result = run(["reproduce", "figure1", "-o", str(output)])
    assert result.exit_code == 0
    assert one_line(result.stderr) == f"Overwrote {output} (9 bytes).\n"
    assert output.read_bytes() == b"image png"


def test_folders_are_made(run, quick, tmp_path):
    output = tmp_path / "new" / "folder" / "figure1.png"
    result = run(["reproduce", "figure1", "-o", str(output)])
    assert result.exit_code == 0
    assert output.is_file()


@pytest.mark.parametrize("name", ["figure1", "figure1.bmp", "figure1.png.txt"])
def test_unknown_formats_are_refused_before_drawing(run, tmp_path, name):
    result = run(["reproduce", "figure1", "-o", str(tmp_path / name)])
    assert result.exit_code == 1
    assert ".png, .pdf, .svg" in one_line(result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_path_through_a_file_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("data")
    result = run(["reproduce", "figure1", "-o", str(tmp_path / "file" / "figure1.png")])
    assert result.exit_code == 1
    assert "leads through a file" in one_line(result.stderr)
    assert (tmp_path / "file").read_text() == "data"


def test_a_folder_of_that_name_is_refused(run, tmp_path):
    (tmp_path / "figure1.png").mkdir()
    result = run(["reproduce", "figure1", "-o", str(tmp_path / "figure1.png")])
    assert result.exit_code == 1
    assert "not a regular file" in one_line(result.stderr)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission_is_refused(run, tmp_path):
    tmp_path.chmod(0o500)
    result = run(["reproduce", "figure1", "-o", str(tmp_path / "figure1.png")])
    tmp_path.chmod(0o700)
    assert result.exit_code == 1
    assert "no permission" in one_line(result.stderr)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody can write to")  # noqa: PTH112
def test_failure_of_the_system_names_the_file_asked_for(run, quick):
    result = run(["reproduce", "figure1", "-o", "/proc/self/figure1.png"])
    assert result.exit_code == 1
    assert one_line(result.stderr).startswith("hcpf: ")
    assert "/proc/self/figure1.png" in result.stderr


def test_failed_write_leaves_the_old_file_and_nothing_else(run, quick, tmp_path, monkeypatch):
    output = tmp_path / "figure1.png"
    output.write_bytes(b"old")

    def full(self, target):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr("pathlib.Path.replace", full)
    result = run(["reproduce", "figure1", "-o", str(output)])
    assert result.exit_code == 1
    assert one_line(result.stderr) == f"hcpf: {output}: No space left on device.\n"
    assert output.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [output]


def test_a_symbolic_link_is_replaced(run, quick, tmp_path):
    target, link = tmp_path / "real.png", tmp_path / "link.png"
    target.write_bytes(b"old")
    link.symlink_to(target)
    result = run(["reproduce", "figure1", "-o", str(link)])
    assert result.exit_code == 0
    assert result.stderr.startswith("Overwrote")
    assert not link.is_symlink()
    assert link.read_bytes() == b"image png"
    assert target.read_bytes() == b"old"


def test_missing_dependency_is_one_line(run, tmp_path, monkeypatch):
    def draw():
        raise MissingDependencyError("Figure 1 requires matplotlib:\npip install '.[paper]'.")

    monkeypatch.setattr(figure1, "draw", draw)
    result = run(["reproduce", "figure1", "-o", str(tmp_path / "figure1.png")])
    assert result.exit_code == 1
    assert one_line(result.stderr) == (
        "hcpf: Figure 1 requires matplotlib: pip install '.[paper]'.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_unexpected_errors_are_not_hidden(run, tmp_path, monkeypatch):
    def draw():
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(figure1, "draw", draw)
    result = run(["reproduce", "figure1", "-o", str(tmp_path / "figure1.png")])
    assert isinstance(result.exception, ZeroDivisionError)


def test_figure1_as_json(run, quick, tmp_path):
    output = tmp_path / "figure1.png"
    result = run(["reproduce", "figure1", "-o", str(output), "--json"])
    assert json.loads(result.stdout) == {"figure1": str(output)}


def arguments_for(counts, tmp_path, *more):
    from pyarrow import csv, parquet

    table = csv.read_csv(counts).rename_columns(["user", "item", "value"])
    parquet.write_table(table, tmp_path / "ml1m.parquet")
    return [
        "reproduce", "table5", "-d", str(tmp_path), "-o", str(tmp_path / "out"), "-K", "2",
        "--splits", "1", *more,
    ]  # fmt: skip


def test_tables(run, counts, tmp_path, monkeypatch):
    from hcpf.experiments import cells

    monkeypatch.setattr(
        cells, "_models_for", lambda tables, values: [("popularity-GA", "F"), ("HCPF-GA", "F")]
    )
    arguments = arguments_for(counts, tmp_path)
    result = run(arguments)
    assert result.exit_code == 0, result.output
    assert "2 results, 1 fits left" in result.stderr
    assert "about" in result.stderr
    assert "HCPF-GA on F" in result.stdout
    assert "popularity" in result.stdout
    text = (tmp_path / "out" / "table5.md").read_text()
    assert "gamma (GA)" in text
    cells = json.loads(run([*arguments, "--json"]).stdout)  # nothing is computed again
    assert {cell["dataset"] for cell in cells} == {"ml1m"}
    assert len({cell["version"] for cell in cells}) == 1
    result = run([*arguments, "--only", "nothing"])
    assert result.exit_code == 1
    assert "not among the data sets" in one_line(result.stderr)
    result = run([*arguments, "--solver", "auto"])
    assert result.exit_code == 1
    assert "cavi or algorithm1" in one_line(result.stderr)


def test_what_does_not_fit_into_the_budget_is_listed(run, counts, tmp_path):
    result = run(arguments_for(counts, tmp_path, "--budget", "0s"))
    assert result.exit_code == 2
    assert "not computed: ml1m" in result.stderr
    result = run(arguments_for(counts, tmp_path, "--budget", "soon"))
    assert result.exit_code == 1
    assert "not a duration" in one_line(result.stderr)


def test_failed_cells_are_named(run, counts, tmp_path, monkeypatch):
    from dataclasses import replace

    from hcpf.experiments import cells, running

    monkeypatch.setattr(cells, "_models_for", lambda tables, values: [("HPF", "B")])
    monkeypatch.setattr(
        running, "compute", lambda cell, parts, recipe, threads: replace(cell, error="no maximum")
    )
    result = run(arguments_for(counts, tmp_path))
    assert result.exit_code == 2
    assert "failed: ml1m, HPF on B: no maximum" in result.stderr
