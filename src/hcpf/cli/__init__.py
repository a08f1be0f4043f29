"""The ``hcpf`` command line: thin commands over the library, one file each.

Commands import what they need when they run, so that ``hcpf --help`` stays quick.
"""

from hcpf.cli.app import main

__all__ = ["main"]
