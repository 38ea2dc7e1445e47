"""The tour: what Mercer does, on data that scikit-learn ships, in a minute and a half."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from mercer.app.cli.demo_clusters import manifolds, subspaces
from mercer.app.cli.demo_images import discriminant, embedding, training
from mercer.app.cli.demo_tables import intervals, learned_metric
from mercer.app.cli.output import notes, out_console
from mercer.plots.style import pyplot

# What is shown, the line below the heading, and what does it.
STAGES: tuple[tuple[str, str, Callable[[Console, Path, int], list[Path]]], ...] = (
    (
        "A table: which inputs matter, and together with which?",
        "A kernel machine predicts, and the gradients of what it has learned bend its metric; then it learns again.",
        learned_metric,
    ),
    (
        "A table: how sure is a prediction?",
        "A Gaussian process picks kernel, metric and noise by leave-one-out. Of its 90 % intervals 90 % should hold.",
        intervals,
    ),
    (
        "Images: an embedding from landmarks",
        "The digits in the principal components of a kernel, seen through 400 landmarks; no labels are used.",
        embedding,
    ),
    (
        "Images: an embedding that learns from views",
        "Distorted views of one image should be near each other: by steps from principal components, and exactly.",
        training,
    ),
    (
        "Classes: a map on which they come apart",
        "Directions in the space of a kernel along which classes differ most, and a classifier in them.",
        discriminant,
    ),
    (
        "Clusters: images that express each other",
        "Each image is put together from others; who uses whom is a graph, and its parts are the clusters.",
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
    console.print("Figures, in the folder", style="bold")
    console.print(f"  {out.resolve()}", soft_wrap=True)
    for path in figures:
        console.print(f"    {path.name}")
    console.print()
    console.print("Your own data: mercer fit, mercer embed, mercer cluster. The papers' claims: mercer reproduce.")
