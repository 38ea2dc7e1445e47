"""`python -m mercer` is the `mercer` command."""

from mercer.app.cli import main

if __name__ == "__main__":
    main()
