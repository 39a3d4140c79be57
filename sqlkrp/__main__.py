"""The ``sqlkrp`` command, and ``python -m sqlkrp``: the command line, from its first import on."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; also while it is imported, Ctrl-C is one line and no traceback."""
    try:
        from sqlkrp import cli

        return cli.main()
    except KeyboardInterrupt:
        print("sqlkrp: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
