"""`mercer demo`: a tour of what Mercer does, on scikit-learn's own data, in a minute and a half."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from mercer.app.cli.demo_clusters import manifolds, subspaces
from mercer.app.cli.demo_images import discriminant, embedding, training
from mercer.app.cli.demo_tables import intervals, learned_metric
from mercer.app.cli.output import notes, out_console
from mercer.plots.style import pyplot

# The heading of each stage, the line below it, and the function that runs it.
STAGES: tuple[tuple[str, str, Callable[[Console, Path, int], list[Path]]], ...] = (
    (
        "A table: which inputs matter, and together with which?",
        "A kernel machine predicts, the gradients of what it has learned change its metric, and it learns again.",
        learned_metric,
    ),
    (
        "A table: how sure is a prediction?",
        "A Gaussian process chooses its settings by leave-one-out; its 90 % intervals should hold nine of ten targets.",
        intervals,
    ),
    (
        "Images: an embedding from landmarks",
        "The digits in the principal components of a kernel, seen through 400 landmarks; no labels are used.",
        embedding,
    ),
    (
        "Images: an embedding that learns from views",
        "Distorted views of one image should be near each other: by steps from principal components, then exactly.",
        training,
    ),
    (
        "Classes: a map on which they come apart",
        "Directions in the space of a kernel along which classes differ most, and a classifier on these directions.",
        discriminant,
    ),
    (
        "Clusters: images that express each other",
        "Each image is a combination of others. Which image uses which makes a graph, and its parts are the clusters.",
        subspaces,
    ),
    (
        "Clusters: manifolds made linear",
        "A wavy circle and a point on the sphere, with noise: a network straightens them while it clusters.",
        manifolds,
    ),
)


def run(out: Path, seed: int = 0) -> None:
    """Run the tour: tables on the terminal, figures in the folder `out`."""
    console = out_console()
    pyplot().switch_backend("agg")
    out.mkdir(parents=True, exist_ok=True)
    figures = []
    with notes():
        for title, line, stage in STAGES:
            console.rule(title, style="bold")
            console.print(line)
            console.print()
            figures += stage(console, out, seed)
            console.print()
    console.print("Figures, in this folder", style="bold")
    console.print(f"  {out.resolve()}", soft_wrap=True)
    for path in figures:
        console.print(f"    {path.name}")
    console.print()
    console.print("For your own data: mercer fit, embed and cluster. For the papers' claims: mercer reproduce.")
