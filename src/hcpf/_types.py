"""Shared names for array types."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

Csr = Any
"""A ``scipy.sparse.csr_array``; scipy's own inferred types say too little to be of use."""

__all__ = ["ArrayLike", "BoolArray", "ComplexArray", "Csr", "FloatArray", "IntArray"]
