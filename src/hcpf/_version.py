"""The version of hcpf."""

__version__ = "0.1.0"
