"""What the shell completes: names of experiments and of data sets."""

# Of data sets and groups of them, for the shell: the library's own list comes with NumPy.
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
    """Return the experiments whose names begin so."""
    from mercer.app.cli.checkout import experiment_names

    return [name for name in (*experiment_names(), "all") if name.startswith(incomplete.replace("-", "_"))]


def complete_sets(incomplete: str) -> list[str]:
    """Return the data sets whose names begin so."""
    return [name for name in SET_NAMES if name.startswith(incomplete)]
