"""Representations without labels: does training help, are rows reconstructed, and what do images gain over Nystroem?

Run as `python -m benchmarks representations [--quick] [--data digits ...] [--seeds 5] [--rows 3000]
[--methods start simclr ...] [--out DIR]`. For every set and seed, linear probes on four draws of few labels score the
principal-component start and each of the eight losses with its defaults: digits and Adult as rows of a table, MNIST as
images. For digits and MNIST, the share of the variance of left-out rows that the kernel autoencoder explains stands
beside that of PCA of the same width. For photographs, the default embedding is compared with scikit-learn's Nystroem of
the same width, and the time of a fit with that of its own products.
"""

import statistics
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem

from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, verdict
from benchmarks.journal import Journal
from experiments.data import prepared
from experiments.report import print_table
from mercer import KernelEmbedding
from mercer.embedding import Steps
from mercer.embedding.linear_probe import linear_probe
from mercer.embedding.moments import add_views
from mercer.embedding.parameters import LOSSES
from mercer.embedding.problem import no_rows
from mercer.kernels import Gaussian
from mercer.training import Adam
from mercer.views.sources import DrawnViews

START, NYSTROEM, DEFAULT, HAD_BACK, AUTOENCODER = "start", "Nystroem", "default", "had back", "kernel_autoencoder"
TABLES = ("digits", "adult")
SHAPES: dict[str, tuple[int, ...]] = {"mnist": (28, 28), "cifar10": (32, 32, 3), "coil20": (32, 32), "yaleb": (48, 42)}
PHOTOGRAPHS = ("cifar10", "coil20", "yaleb")
# Labels of a probe: a number for tables, else a share of the rows.
TABLE_LABELS, IMAGE_LABELS = 200, 0.1
HIDDEN, LANDMARKS = 32, 500
SEEDS, DRAWS, TEST_ROWS = 5, 4, 2000
STILL = Steps(epochs=1, optimizer=Adam(1e-12))


def score(data: str, method: str, seed: int, rows: int | None) -> dict[str, float]:
    """Fit one embedding, and return its probe's accuracy, the seconds it took, and that of its products."""
    X, y, X_test, y_test = prepared(data, rows, TEST_ROWS, seed)
    model = contestant(data, method, X, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    seconds = time.perf_counter() - start
    found = {"accuracy": probed(data, model.transform(X), y, model.transform(X_test), y_test, seed), "seconds": seconds}
    if method == DEFAULT:
        found["products"] = seconds_of_products(model, X)
    return found


def probed(data: str, F: np.ndarray, y: np.ndarray, F_test: np.ndarray, y_test: np.ndarray, seed: int) -> float:
    """Return the mean accuracy of linear probes of the same features over several draws of the labeled rows.

    With 200 labels one draw differs from the next by half a point, which is what losses differ by.
    """
    labeled = TABLE_LABELS if data in TABLES else IMAGE_LABELS
    draws = [
        linear_probe(None, F, y, F_test, y_test, labeled=labeled, random_state=DRAWS * seed + draw).accuracy
        for draw in range(DRAWS)
    ]
    return statistics.mean(draws)


def contestant(data: str, method: str, X: np.ndarray, seed: int) -> Any:
    """Return the transformer, not fitted."""
    if method == NYSTROEM:
        gamma = 0.5 / Gaussian().resolved(X, seed).bandwidth ** 2
        return Nystroem(gamma=gamma, n_components=150, random_state=seed)
    options: dict[str, Any] = {"image_shape": SHAPES[data]} if data in SHAPES else {}
    if method == START:
        return KernelEmbedding("simclr", solver=STILL, random_state=seed, **options)
    if method != DEFAULT:
        options["loss"] = method
    return KernelEmbedding(random_state=seed, **options)


def seconds_of_products(model: KernelEmbedding, X: np.ndarray) -> float:
    """Return what views, kernel values and moments of all rows take: no fit can do without."""
    source = DrawnViews(X, model.augmented_, model.n_views, model.seed_)
    start = time.perf_counter()
    centers = model._centers()
    add_views(no_rows(centers), centers, source, model.seed_)
    return time.perf_counter() - start


def reconstruction(data: str, method: str, seed: int, rows: int | None) -> dict[str, float]:
    """Return the share of the variance of left-out rows that the autoencoder explains, and that PCA does."""
    X, _, X_test, _ = prepared(data, rows, TEST_ROWS, seed)
    model = KernelEmbedding(AUTOENCODER, n_components=HIDDEN, n_landmarks=LANDMARKS, random_state=seed).fit(X)
    pca = PCA(HIDDEN, random_state=seed).fit(X)
    total = np.square(X_test - X.mean(axis=0)).sum()
    lost = {
        name: np.square(X_test - m.inverse_transform(m.transform(X_test))).sum() / total
        for name, m in (("ours", model), ("pca", pca))
    }
    return {name: float(1.0 - share) for name, share in lost.items()}


def gains(fits: Sequence[dict[str, Any]], data: str) -> dict[str, list[float]]:
    """Return the gain of each method over the start, seed by seed."""
    accuracy = {(f["method"], f["seed"]): f["accuracy"] for f in fits if f["data"] == data}
    seeds = sorted({seed for method, seed in accuracy if method == START})
    methods = dict.fromkeys(method for method, _ in accuracy if method != START)
    found = {m: [accuracy[m, s] - accuracy[START, s] for s in seeds if (m, s) in accuracy] for m in methods}
    return {m: differences for m, differences in found.items() if differences}


def judge(fits: Sequence[dict[str, Any]], had_back: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on what was run."""
    claims = []
    for data in dict.fromkeys(f["data"] for f in fits if f["method"] == START):
        found = {m: g for m, g in gains(fits, data).items() if m in LOSSES and g}
        means = {m: statistics.mean(g) for m, g in found.items()}
        allowed = 0.01 if data in TABLES else 0.005
        claims.append(verdict(f"{data}: no loss further below the start", -min(means.values()), allowed))
        if data in TABLES:
            clear = sum(means[m] > statistics.pstdev(g) for m, g in found.items() if means[m] > 0)
            claims.append(verdict(f"{data}: losses above the start by more than the spread", clear, at_least=3))
        else:
            claims.append(verdict(f"{data}: losses above the start", sum(g > 0 for g in means.values()), at_least=6))
    for data in dict.fromkeys(f["data"] for f in fits if f["method"] == NYSTROEM):
        both = [[f["accuracy"] for f in fits if (f["data"], f["method"]) == (data, m)] for m in (DEFAULT, NYSTROEM)]
        ahead = statistics.mean(both[0]) - statistics.mean(both[1])
        claims.append(verdict(f"{data}: the default ahead of Nystroem of its width", ahead, at_least=0.02))
        ours = [f["seconds"] / f["products"] for f in fits if (f["data"], f["method"]) == (data, DEFAULT)]
        claims.append(verdict(f"{data}: seconds of a fit over those of its products", statistics.median(ours), 3.0))
    for data in dict.fromkeys(f["data"] for f in had_back):
        shares = [f["ours"] / f["pca"] for f in had_back if f["data"] == data]
        claims.append(
            verdict(f"{data}: reconstructed variance, as a share of PCA's", statistics.mean(shares), at_least=0.95)
        )
    return claims


def summary(fits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a table for the pages: a row for each set, with the mean accuracies over seeds.

    The default is the exact optimum of the spectral contrastive loss: of photographs it is in that column.
    """
    methods = (START, NYSTROEM, *LOSSES)
    rows = []
    for data, n in dict.fromkeys((f["data"], f["rows"]) for f in fits):
        of_set = [f for f in fits if (f["data"], f["rows"]) == (data, n) and "accuracy" in f]
        found: dict[str, list[float]] = {}
        for f in of_set:
            name = "spectral_contrastive" if f["method"] == DEFAULT else f["method"]
            found.setdefault(name, []).append(100.0 * f["accuracy"])
        if found:
            cells = [f"{statistics.mean(found[name]):.1f}" if name in found else "" for name in methods]
            seeds = max(len(accuracies) for accuracies in found.values())
            rows.append([data, "all" if n is None else n, seeds, *cells])
    columns = ["rows at most", "seeds", *(name.replace("_", " ") for name in methods)]
    return {"columns": columns, "rows": rows}


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for, continue an earlier run, and judge."""
    parser = options("representations", "digits alone, one seed, 600 rows")
    names = (*TABLES, *SHAPES)
    parser.add_argument("--data", nargs="+", choices=names, default=list(names), help="sets")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rows", type=int, help="training rows, at most; all by default")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=(START, *LOSSES),
        default=[START, *LOSSES],
        help="start and losses, but of photographs",
    )
    args = parser.parse_args(argv)
    load = load_at_start()
    sets, seeds, rows = (["digits"], 1, 600) if args.quick else (args.data, args.seeds, args.rows)
    journal = Journal(args.out / f"{file_name('representations', args)}.jsonl", "data", "method", "seed", "rows")
    line = "{data:8} {method:22} seed {seed} accuracy {accuracy:.4f} in {seconds:.1f} s"
    fits = [
        journal.entry(score, line, data=data, method=method, seed=seed, rows=rows)
        for data in sets
        for seed in range(seeds)
        for method in ((DEFAULT, NYSTROEM) if data in PHOTOGRAPHS else args.methods)
    ]
    back = "{data:8} reconstructed {ours:.4f}, by PCA {pca:.4f}"
    had_back = [
        journal.entry(reconstruction, back, data=data, method=HAD_BACK, seed=0, rows=rows)
        for data in sets
        if data in ("digits", "mnist") and AUTOENCODER in args.methods
    ]
    table = [
        (data, method, f"{statistics.mean(found):+.4f}", f"{statistics.pstdev(found):.4f}")
        for data in sets
        if data not in PHOTOGRAPHS
        for method, found in gains(fits, data).items()
    ]
    print_table("Gain over the principal-component start, and its spread", ("set", "loss", "gain", "spread"), table)
    claims = judge(fits, had_back)
    print_claims(claims)
    everything = summary(list(journal.entries.values()))
    keep(
        args.out,
        file_name("representations", args),
        load,
        fits=fits,
        had_back=had_back,
        claims=claims,
        summary=everything,
    )
    return 0
