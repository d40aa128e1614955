"""``python -m truestep``: the same as the ``truestep`` command."""

from truestep.cli import main

if __name__ == "__main__":
    main()
