"""The command line as such, and its tour, as a person runs them."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mercer.app.cli.app import app
from mercer.app.cli.completion import SET_NAMES, complete_papers, complete_sets

HEAVY = ("numpy", "scipy", "torch", "sklearn", "pandas", "matplotlib", "mercer.app.cli.output", "mercer.datasets")
FIGURES = [
    "affinity-digits.png",
    "discriminants-digits.png",
    "embedding-digits.png",
    "intervals-diabetes.png",
    "intervals-friedman.png",
    "manifolds.png",
    "metric-made.png",
    "metric-wine.png",
    "training-digits.png",
]


@pytest.fixture
def small(monkeypatch):
    """The tour with smaller sizes: what is written stays the same."""
    from mercer.app.cli import demo_clusters, demo_images, demo_tables

    monkeypatch.setattr(demo_tables, "GP_OPTIONS", {"kernel": "matern52", "metric": "ard", "warp": "none"})
    monkeypatch.setattr(demo_tables, "N_ITER", 3)
    monkeypatch.setattr(demo_tables, "ROWS", 400)
    monkeypatch.setattr(demo_images, "N_IMAGES", 900)
    monkeypatch.setattr(demo_images, "LANDMARKS", 150)
    monkeypatch.setattr(demo_images, "FEW_COMPONENTS", 32)
    monkeypatch.setattr(demo_images, "STEPS", replace(demo_images.STEPS, epochs=10))
    monkeypatch.setattr(demo_clusters, "N_IMAGES", 300)
    monkeypatch.setattr(demo_clusters, "N_POINTS", 40)
    monkeypatch.setattr(demo_clusters, "START_EPOCHS", 30)
    monkeypatch.setattr(demo_clusters, "EPOCHS", 20)


def scores(output, name):
    """Return the numbers of the table's line that begins with a name."""
    line = next(line for line in output.splitlines() if name in line)
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line.partition(name)[2])]


@pytest.mark.parametrize("width", [80, 200])
def test_demo_prints_its_tables_and_writes_its_figures(tmp_path, small, width, monkeypatch):
    if width == 200:  # the whole tour once is enough: here only how it looks
        from mercer.app.cli import demo

        monkeypatch.setattr(demo, "STAGES", demo.STAGES[:1])
    out = tmp_path / "new" / "folder"
    result = CliRunner().invoke(app, ["demo", "--out", str(out)], env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    shown = result.stdout
    # Paths are not cut, so that they can be copied.
    assert all(len(line) <= width for line in shown.splitlines() if str(tmp_path) not in line)
    assert str(out) in shown
    plain, learned, *_ = scores(shown, "wine: three cultivars")
    assert learned < plain
    assert re.search(r"direction with 7\d\.\d% of the metric: \+0\.7\d x[01] \+0\.\d+ x[01]", shown)
    if width == 200:
        return
    assert sorted(path.name for path in out.iterdir()) == FIGURES
    assert all(name in shown for name in FIGURES)
    rmse, _, covered = scores(shown, "friedman, 200 rows │ GPRegressor")
    assert rmse < 0.8 * scores(shown, "friedman, 200 rows │ BayesianRidge")[0]
    assert 80 < covered < 98
    start, steps, exact = (
        scores(shown, name)[0] for name in ("the start:", "SimCLR, 10 epochs", "spectral contrastive")
    )
    assert exact > start
    assert steps != start
    assert scores(shown, "KernelDiscriminant")[0] > scores(shown, "LDA")[0]
    assert scores(shown, "SubspaceClustering")[0] > 60
    assert scores(shown, "ManifoldClustering") == [100.0, 1.0]
    # Of ten inputs, the five that the target is a function of come first.
    found = re.search(r"what the process finds\n.*\n((?:.*\n){5})", shown).group(1)
    assert sorted(re.findall(r"x\d", found)) == ["x0", "x1", "x2", "x3", "x4"]


def in_a_process(*arguments, **variables):
    """Return what Python says about the heavy modules that a call of the command has imported."""
    code = f"""
import sys
from mercer.app.cli import main
sys.argv[0] = "mercer"
try:
    main()
except SystemExit:
    pass
print("HEAVY", [name for name in {HEAVY!r} if name in sys.modules])
"""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=True
    ).stdout


@pytest.mark.parametrize("command", [(), ("fit",), ("reproduce",), ("data",), ("data", "get"), ("demo",)])
def test_help_imports_nothing_heavy(command):
    out = in_a_process(*command, "--help", COLUMNS="100")
    assert out.endswith("HEAVY []\n")
    assert "Usage" in out


def test_help_names_the_commands():
    out = subprocess.run([sys.executable, "-m", "mercer", "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("fit", "predict", "embed", "cluster", "reproduce", "data", "demo", "--version", "Exit codes"):
        assert name in out


def test_version():
    import mercer

    out = in_a_process("--version")
    assert out == f"mercer {mercer.__version__}\nHEAVY []\n"


def test_names_are_completed_without_importing_anything_heavy():
    words = {"mercer reproduce man": "manifold_linearizing_clustering", "mercer data get ci": "cifar10"}
    for typed, name in words.items():
        variables = {"_MERCER_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        out = in_a_process(**variables)
        assert out.split()[0] == name
        assert out.endswith("HEAVY []\n")


def test_completion_offers_names_by_their_beginning(monkeypatch):
    assert complete_papers("rfm-") == ["rfm_and_ard"]
    assert {"all", "krepes"} < set(complete_papers(""))
    assert complete_sets("c") == ["covtype", "cifar10", "coil20", "concrete"]
    monkeypatch.setattr("mercer.app.cli.checkout.find_checkout", lambda: None)
    assert complete_papers("") == ["all"]


def test_completed_data_sets_are_those_that_there_are():
    from mercer.app.cli.data import GROUPS
    from mercer.datasets.catalog import ALL_SOURCES

    assert set(SET_NAMES) == {*ALL_SOURCES, *GROUPS}


def test_without_typer_the_command_says_what_to_install(monkeypatch):
    from mercer.app import cli

    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "mercer.app.cli.app", raising=False)
    with pytest.raises(SystemExit, match=r"pip install 'mercer\[cli\]'"):
        cli.main()
