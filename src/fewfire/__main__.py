"""`python -m fewfire` is `fewfire`."""

from fewfire.cli import main

if __name__ == "__main__":
    main()
