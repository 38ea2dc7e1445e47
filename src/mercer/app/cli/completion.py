"""Names of experiments and data sets for completion in the shell."""

# The names of data sets and groups of them are repeated here, because importing the library's list imports NumPy.
SET_NAMES = (
    "mnist",
    "adult",
    "covtype",
    "cifar10",
    "yaleb",
    "coil20",
    "boston",
    "concrete",
    "energy",
    "kin8nm",
    "power",
    "wine_red",
    "yacht",
    "all",
    "uci",
)


def complete_papers(incomplete: str) -> list[str]:
    """Return the experiments whose names begin with what was typed."""
    from mercer.app.cli.checkout import experiment_names

    return [name for name in (*experiment_names(), "all") if name.startswith(incomplete.replace("-", "_"))]


def complete_sets(incomplete: str) -> list[str]:
    """Return the data sets whose names begin with what was typed."""
    return [name for name in SET_NAMES if name.startswith(incomplete)]
