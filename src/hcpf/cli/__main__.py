"""``python -m hcpf.cli``."""

from hcpf.cli import main

if __name__ == "__main__":
    main()
