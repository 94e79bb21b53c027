"""``python -m kernelprop``: the command."""

import sys

from kernelprop.cli import main

if __name__ == "__main__":
    sys.exit(main())
