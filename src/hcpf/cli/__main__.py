"""``python -m hcpf.cli``."""

from hcpf.cli.app import main

if __name__ == "__main__":
    main(prog_name="hcpf")
