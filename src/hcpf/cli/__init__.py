"""The ``hcpf`` command line: thin commands over the library, one file each.

Commands import the library when they run, which keeps ``hcpf --help`` fast.
"""

import sys

INTERRUPTED = 130
"""Exit code of Ctrl-C."""


def main() -> None:
    """Run a command; Ctrl-C ends it without a traceback while modules are still loading, too."""
    when = " before it began; nothing was saved"
    try:
        from hcpf.cli.app import app

        when = ""
        app(prog_name="hcpf")
    except KeyboardInterrupt:
        sys.stderr.write(f"hcpf: interrupted{when}.\n")
        sys.exit(INTERRUPTED)
