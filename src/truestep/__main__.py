"""``python -m truestep``: the same as the ``truestep`` command."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # Python put the working folder first: a module there must not stand in for one that the command needs.
        sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from truestep.cli import main

    main()
