"""Small data and a small fitted model, and ways to run a command."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from hcpf import HCPF, simulate
from hcpf.cli.app import app
from hcpf.elements import Binomial, Gamma, Poisson


@pytest.fixture
def run():
    """Run a command in this process."""
    return partial(CliRunner().invoke, app)


@pytest.fixture(scope="session")
def invoke():
    """Run a command that must succeed."""

    def go(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, (arguments, result.output, result.exception)
        return result

    return go


@pytest.fixture
def run_json(run):
    """Run a command with --json; stdout must be JSON and nothing else."""

    def go(*arguments):
        result = run([*map(str, arguments), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return go


@pytest.fixture
def fails(run):
    """Run a command that must fail with a message in one line; returns the message."""

    def go(*arguments, code=1):
        result = run([str(argument) for argument in arguments])
        assert result.exit_code == code, (result.output, result.exception)
        assert "Traceback" not in result.output
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert code == 2 or sum(line.startswith("hcpf: ") for line in lines) == 1, lines
        return result.stderr if code == 2 else lines[-1]

    return go


@pytest.fixture
def start():
    """Run a command in a separate process; stdin, stdout and stderr are pipes."""

    def go(*arguments):
        command = [sys.executable, "-m", "hcpf.cli", *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return go


def write_csv(path, data, names=("customer", "product", "spend")):
    entries = data.matrix.tocoo()
    rows = zip(entries.row, entries.col, entries.data, strict=True)
    lines = [",".join(names), *(f"c{u},p{i},{float(y)!r}" for u, i, y in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def sales(folder):
    """Money: continuous values."""
    drawn = simulate(60, 40, density=0.25, element=Gamma(2, 0.05), random_state=2)
    return write_csv(folder / "sales.csv", drawn.interactions)


@pytest.fixture(scope="session")
def varied(folder):
    """Money; the mean of a purchase differs between products."""
    data = simulate(80, 30, density=0.3, element=Gamma(4, 0.1), random_state=3).interactions
    matrix = data.matrix.copy()
    matrix.data *= np.exp(np.random.default_rng(0).normal(0.0, 1.0, size=30))[matrix.indices]
    return write_csv(folder / "varied.csv", type(data)(matrix, data.users, data.items))


@pytest.fixture(scope="session")
def counts(folder):
    """Integers from 1, as HPF takes them."""
    drawn = simulate(60, 40, density=0.25, element=Poisson(2.0), random_state=2).interactions
    matrix = drawn.matrix.copy()
    matrix.data = np.maximum(matrix.data, 1.0)
    data = type(drawn)(matrix, drawn.users, drawn.items)
    return write_csv(folder / "counts.csv", data, ("user", "item", "count"))


@pytest.fixture(scope="session")
def data_files(folder):
    """Money, counts and ratings, with more pairs than intervals are solved for one by one."""
    elements = {"money": Gamma(2, 0.05), "counts": Poisson(3.0), "ratings": Binomial(5, 0.6)}
    files = {}
    for name, element in elements.items():
        hurdle = name == "ratings"
        drawn = simulate(120, 70, density=0.2, element=element, hurdle=hurdle, random_state=5)
        files[name] = write_csv(folder / f"every-{name}.csv", drawn.interactions)
    return files


@pytest.fixture(scope="session")
def model(folder, sales):
    """A saved model of ``sales``."""
    from hcpf import Interactions

    data = Interactions.read(sales, user="customer", item="product", value="spend")
    path = folder / "model"
    HCPF(3, element="gamma", n_fits=1, max_iter=5, random_state=0).fit(data).save(path)
    return path
