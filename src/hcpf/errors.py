"""Exceptions of hcpf, whose messages state what is wrong and what to do about it."""

from typing import Self


class HcpfError(Exception):
    """Base of all exceptions that hcpf raises on purpose."""


class InputError(HcpfError, ValueError):
    """An argument cannot be used as it was given."""


class ParameterError(InputError):
    """A model or distribution parameter lies outside its domain."""


class SupportError(InputError):
    """A value cannot come from the chosen element distribution."""


class EstimationError(InputError):
    """The data do not determine a maximum-likelihood estimate."""


class IncompleteElementError(HcpfError, AttributeError):
    """A parameter is neither set nor estimated."""


class MissingDependencyError(HcpfError, ImportError):
    """An optional package is needed for this call."""

    @classmethod
    def of_extra(cls, problem: str, extra: str) -> Self:
        """Return the error with how to install an extra."""
        return cls(f"{problem}. Install it from a clone of hcpf: pip install '.[{extra}]'.")


class NotFittedError(HcpfError, AttributeError):
    """A model was asked for something that only a fitted one has."""


class CheckpointError(HcpfError):
    """A checkpoint cannot be read, written, or belongs to another run."""


class ModelError(HcpfError):
    """A saved model cannot be read or written."""


class ShardError(HcpfError):
    """A folder of shards cannot be read or written."""


class ClusterError(HcpfError):
    """A cluster cannot be used, or one of its workers was lost."""
