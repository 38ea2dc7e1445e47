"""Seconds and NMI of clusterings, on one thread, with default threads, and with one or two other busy processes.

Run as `python -m benchmarks clustering [--repeats 3] [--only TEXT] [--quick] [--out DIR]`. Every fit has a fresh
process. A case has an estimator and data with classes, which are used for the score only. New families add their cases
to CASES. Data that are a single array are passed to `fit`; several arrays are the samples and their views.
"""

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, text, verdict
from benchmarks.busy_neighbor import busy_process
from benchmarks.contestants import one_thread
from experiments.report import print_table

Data = tuple[np.ndarray | list[np.ndarray], np.ndarray]
COLUMNS = ("seconds", "cpu_seconds", "nmi")


@dataclass(frozen=True)
class ClusteringCase:
    """Data, an estimator for a number of clusters, and the bounds: seconds on one thread, and NMI."""

    name: str
    data: Callable[[], Data]
    estimator: Callable[[int], Any]
    most_seconds: float | None = None
    least_nmi: float | None = None
    quick: bool = False


@dataclass(frozen=True)
class Surroundings:
    """How a fit is run: with one thread or the libraries' default, and with this number of other busy processes."""

    name: str
    default_threads: bool
    busy: int


ONE_THREAD = Surroundings("one thread, alone", default_threads=False, busy=0)
ALL_SURROUNDINGS = (
    ONE_THREAD,
    Surroundings("default threads, alone", default_threads=True, busy=0),
    Surroundings("default threads, beside one busy process", default_threads=True, busy=1),
    Surroundings("default threads, beside two busy processes", default_threads=True, busy=2),
)
# The largest ratios of seconds to those on one thread alone, by the number of busy processes. With two busy processes
# on two cores, a thread gets two thirds of a core.
MOST_RATIOS = {0: 1.1, 1: 1.5, 2: 2.5}


# ---- the cases ------------------------------------------------------------------------------------------------------


def faces(subjects: int) -> Data:
    """Return all images of the first subjects of Extended Yale B."""
    from mercer import datasets

    data = datasets.load("yaleb")
    rows = data.y < subjects
    return data.X[rows].reshape(rows.sum(), -1), data.y[rows]


def planes() -> Data:
    """Return five planes of R^30 with noise, for a quick run."""
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(30, 2)) @ random.normal(size=(2, 30)) for _ in range(5)])
    return X + 0.05 * random.normal(size=X.shape), np.repeat(np.arange(5), 30)


def subspace_clustering(n_clusters: int) -> Any:
    from mercer import SubspaceClustering

    return SubspaceClustering(n_clusters, random_state=0)


def manifolds() -> Data:
    """Return the 200 points of appendix D.1 of manifold linearizing and clustering."""
    from experiments.manifold_linearizing_clustering.data import two_manifolds

    samples = two_manifolds(0.05, 0)
    return samples.X, samples.y


def scattered() -> Data:
    """Return wavelet scattering features of 10 000 images of MNIST, with views."""
    from experiments.manifold_linearizing_clustering.data import samples_of

    samples = samples_of("mnist", 10_000, 0)
    return [samples.X, *samples.views], samples.y


def digits() -> Data:
    """Return scikit-learn's digits, images of 8 x 8 pixels, as flat rows."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return (X / 16.0).astype(np.float32), y


def manifold_clustering(n_clusters: int, **options: Any) -> Any:
    from mercer import ManifoldClustering

    return ManifoldClustering(n_clusters, random_state=0, **options)


CASES: list[ClusteringCase] = [
    ClusteringCase("SubspaceClustering, planes", planes, subspace_clustering, least_nmi=0.95, quick=True),
    ClusteringCase("SubspaceClustering, 10 faces", lambda: faces(10), subspace_clustering, 2.0, 0.9),
    ClusteringCase("SubspaceClustering, 38 faces", lambda: faces(38), subspace_clustering, 25.0, 0.92),
    ClusteringCase(
        "ManifoldClustering, two manifolds",
        manifolds,
        partial(manifold_clustering, n_components=3, backbone="mlp"),
        10.0,
        0.95,
    ),
    ClusteringCase("ManifoldClustering, digits", digits, partial(manifold_clustering, image_shape=(8, 8))),
    ClusteringCase("ManifoldClustering, MNIST", scattered, partial(manifold_clustering, standardize=False)),
]


# ---- measuring ------------------------------------------------------------------------------------------------------


def clustered(name: str, on_one_thread: bool) -> dict[str, float]:
    """Fit a case in this process; return the seconds of the fit alone, and the NMI of clusters and classes."""
    from sklearn.metrics import normalized_mutual_info_score

    case = next(case for case in CASES if case.name == name)
    X, y = case.data()
    model = case.estimator(len(np.unique(y)))
    with one_thread() if on_one_thread else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start, start_cpu = time.perf_counter(), time.process_time()
        labels = (model.fit_views(*X) if isinstance(X, list) else model.fit(X)).labels_
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "nmi": float(normalized_mutual_info_score(y, labels))}


def measured(case: ClusteringCase, place: Surroundings) -> dict[str, Any]:
    """Fit a case in a fresh process, while the number of other processes that its surroundings name are busy."""
    with ExitStack() as neighbors:
        for _ in range(place.busy):
            neighbors.enter_context(busy_process())
        found = fresh_process.call(
            "clustering", "clustered", default_threads=True, name=case.name, on_one_thread=not place.default_threads
        )
    return {"case": case.name, "surroundings": place.name, **found}


def median(fits: Sequence[dict[str, Any]], case: str, place: str, of: str = "seconds") -> float | None:
    found = [fit[of] for fit in fits if fit["case"] == case and fit["surroundings"] == place]
    return statistics.median(found) if found else None


def judge(cases: Sequence[ClusteringCase], fits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts by medians: seconds on one thread, the ratios of other surroundings to these, and the NMI."""
    claims = []
    for case in cases:
        alone = median(fits, case.name, ONE_THREAD.name)
        if case.most_seconds is not None:
            claims.append(verdict(f"{case.name}: seconds, {ONE_THREAD.name}", alone, case.most_seconds))
        for place in ALL_SURROUNDINGS[1:]:
            seconds = median(fits, case.name, place.name)
            ratio = None if alone is None or seconds is None else seconds / alone
            claim = f"{case.name}: seconds, {place.name}, over {ONE_THREAD.name}"
            claims.append(verdict(claim, ratio, MOST_RATIOS[place.busy]))
        if case.least_nmi is not None:
            nmi = median(fits, case.name, ONE_THREAD.name, "nmi")
            claims.append(verdict(f"{case.name}: NMI", nmi, at_least=case.least_nmi))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Fit every case in all surroundings in turn, and print the verdicts."""
    parser = options("clustering", "the small cases, once")
    parser.add_argument("--repeats", type=int, help="rounds (3)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases whose name contains TEXT")
    args = parser.parse_args(argv)
    cases = [case for case in CASES if case.quick == args.quick and args.only in case.name]
    load, fits = load_at_start(), []
    for _ in range(args.repeats or (1 if args.quick else 3)):
        for case in cases:
            for place in ALL_SURROUNDINGS:
                fits.append(measured(case, place))
                shown = "{case}, {surroundings}: {seconds:.2f} s, {cpu_seconds:.2f} of CPU, NMI {nmi:.3f}"
                print(shown.format(**fits[-1]), flush=True)
    rows = [
        (case.name, place.name, *(text(median(fits, case.name, place.name, of)) for of in COLUMNS))
        for case in cases
        for place in ALL_SURROUNDINGS
    ]
    print_table("clustering: medians", ("case", "surroundings", *COLUMNS), rows)
    claims = judge(cases, fits)
    print_claims(claims)
    keep(args.out, file_name("clustering", args), load, fits=fits, claims=claims)
    return 0
