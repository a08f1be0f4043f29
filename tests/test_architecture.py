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


def loaded_after(*modules):
    """The names of all modules that are loaded after importing some in a fresh process."""
    script = "import importlib, sys\n"
    script += f"for name in {modules!r}: importlib.import_module(name)\n"
    script += "print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_hcpf_loads_neither_scikit_learn_nor_numba():
    heavy = {
        "sklearn",
        "numba",
        "llvmlite",
        "pandas",
        "polars",
        "matplotlib",
        "rich",
        "typer",
        "safetensors",
    }
    assert not loaded_after("hcpf") & heavy


def test_a_fitted_model_needs_neither_training_nor_scikit_learn():
    loaded = loaded_after(*(module for module in MODULES if is_within(module, "hcpf.model")))
    assert "sklearn" not in loaded
    assert not [module for module in loaded if is_within(module, "hcpf.training")]


def test_distributions_and_elements_need_no_compiled_kernels():
    packages = ("hcpf.elements", "hcpf.distributions", "hcpf.data")
    loaded = loaded_after(*(m for m in MODULES if any(is_within(m, p) for p in packages)))
    assert not loaded & {"numba", "sklearn"}
