"""The layers of the package: every module has one, and imports stay light."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in (SOURCE / "hcpf").rglob("*.py")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def layered_packages():
    """The packages and modules that the layers name; those in parentheses need not exist."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["type"] == "layers")
    assert layers["exhaustive"]
    names = [name.strip() for layer in layers["layers"] for name in layer.split("|")]
    container = layers["containers"][0]
    return {f"{container}.{name.strip('()')}": not name.startswith("(") for name in names}


def is_within(module, package):
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_one_layer(module):
    if module == "hcpf":
        return  # the root imports what it exports, and nothing below may import the root's names
    homes = [package for package in layered_packages() if is_within(module, package)]
    assert len(homes) == 1, f"{module} is in no layer of tool.importlinter in pyproject.toml"


def test_every_layer_has_a_module():
    for package, required in layered_packages().items():
        assert not required or package in MODULES, f"{package} does not exist any more"


def loaded_after(*modules, then=""):
    """The names of all modules that are loaded after importing some in a fresh process."""
    script = "import importlib, sys\n"
    script += f"for name in {modules!r}: importlib.import_module(name)\n"
    script += f"{then}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_hcpf_loads_nothing_else():
    third_party = {"llvmlite", "numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "typer"}
    assert not loaded_after("hcpf") & third_party
    loaded = {module for module in loaded_after("hcpf") if is_within(module, "hcpf")}
    assert loaded == {"hcpf", "hcpf._version"}


def test_the_root_exports_all_that_it_names():
    import hcpf

    for name in hcpf.__all__:
        assert getattr(hcpf, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        hcpf.Nothing  # noqa: B018


SERVING = {
    "recommend": "hcpf.load(folder).recommend(model.users[:3], 5)",
    "by expected value": "hcpf.load(folder).recommend(model.users[:3], 5, by='expected_value')",
    "predict": "hcpf.load(folder).predict(model.users[:3], model.items[0])",
    "info": "describe_typical_values(hcpf.load(folder))",
    "intervals": "list(predict_all(hcpf.load(folder), model.users[:3], model.items[:2]))",
}


@pytest.mark.parametrize("use", SERVING)
def test_a_saved_model_serves_a_few_users_without_the_trainer_and_slow_libraries(use, tmp_path):
    import numpy as np

    from hcpf import HCPF

    data = np.random.default_rng(0).gamma(2.0, 1.0, (30, 20))
    data[data < 1.5] = 0.0
    settings = {"element": "gamma", "vary_by": "both", "n_fits": 2, "max_iter": 2}
    HCPF(2, **settings, random_state=0).fit(data, progress=False).save(tmp_path / "model")
    script = f"""
import hcpf
from hcpf.model.inspect import describe_typical_values
from hcpf.model.predict import predict_all
folder = {str(tmp_path / "model")!r}
model = hcpf.load(folder)
{SERVING[use]}
"""
    loaded = loaded_after(then=script)
    heavy = {"numba", "pandas", "scipy.optimize", "scipy.stats", "sklearn", "pyarrow.dataset"}
    assert not loaded & heavy
    assert not [module for module in loaded if is_within(module, "hcpf.training")]


def test_a_fitted_model_needs_neither_training_nor_scikit_learn():
    loaded = loaded_after(*(module for module in MODULES if is_within(module, "hcpf.model")))
    assert "sklearn" not in loaded
    assert not [module for module in loaded if is_within(module, "hcpf.training")]


def test_distributions_and_elements_need_no_compiled_kernels():
    packages = ("hcpf.elements", "hcpf.distributions", "hcpf.data")
    loaded = loaded_after(*(m for m in MODULES if any(is_within(m, p) for p in packages)))
    assert not loaded & {"numba", "sklearn"}
