"""Hierarchical compound Poisson factorization.

One model for two questions about a sparse matrix: will this pair be observed, and if so, with
what value?
"""

from hcpf import elements, errors
from hcpf._version import __version__
from hcpf.compound import CompoundPoisson, ObservedCompoundPoisson

__all__ = ["CompoundPoisson", "ObservedCompoundPoisson", "__version__", "elements", "errors"]
