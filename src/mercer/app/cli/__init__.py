"""The command line: no logic of its own. Imports nothing heavy before a command asks for it."""

import sys


def main() -> None:
    """Run the `mercer` command."""
    try:
        from mercer.app.cli.app import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("the command line needs typer and rich: pip install 'mercer[cli]'")
    app()
