"""The command line. It has no logic of its own, and imports heavy modules only when a command needs them."""

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
