"""Call a function of a benchmark in a fresh process, which has not loaded or cached anything.

`call` runs `python -m benchmarks.fresh_process MODULE FUNCTION`, passes the arguments as JSON on its standard input,
and reads the answer as JSON from the last line of its standard output.
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
# Libraries read their number of threads from these variables when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def call(module: str, function: str, /, *, default_threads: bool = False, **arguments: Any) -> Any:
    """Call `function` of `benchmarks.module` in a fresh process; its arguments and its answer must be JSON values.

    Parameters
    ----------
    module, function : str
    default_threads : bool, default=False
        Whether to remove the environment variables about threads, so that libraries use their defaults.
    **arguments
    """
    hidden = THREAD_VARIABLES if default_threads else ()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fresh_process", module, function],
        input=json.dumps(arguments),
        env={name: value for name, value in os.environ.items() if name not in hidden},
        cwd=ROOT.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the function that the arguments name, and print its answer."""
    module, function = sys.argv[1:]
    arguments = json.loads(sys.stdin.read())
    print("\n" + json.dumps(getattr(import_module(f"benchmarks.{module}"), function)(**arguments)))


if __name__ == "__main__":
    main()
