"""``python -m leapmodel`` is the command line."""

from leapmodel.cli import main

if __name__ == "__main__":
    main()
