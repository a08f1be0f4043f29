"""The ``hcpf`` command line: thin commands over the library, one file each.

Commands import the library when they run, which keeps ``hcpf --help`` fast.
"""

from hcpf.cli.app import main

__all__ = ["main"]
