"""Gaussian process classification whose kernel, warp and metric are learned from the table."""

from functools import partial
from typing import Any

import numpy as np
import torch

from mercer.blocks import WORKING_MEMORY
from mercer.checks import all_or_nothing, answers_without_nan, check_number, finite_answers
from mercer.rows import wherever_rows_are
from mercer.tabular_models.deadline import (
    NEWTON_STEPS_UNTIL,
    OUTPUT_SCALES_UNTIL,
    SEARCH_OF_A_CLASSIFIER_UNTIL,
    Deadline,
)
from mercer.tabular_models.fitters import ClassFitter
from mercer.tabular_models.latent_machine import (
    FIRST_SCALE,
    LatentMachine,
    Scale,
    average_probabilities,
    best_scale,
    best_sharpness,
    latent_machine,
    left_out_of,
)
from mercer.tabular_models.learned import Fit
from mercer.tabular_models.rfm import FITTED, LeftOutAverage
from mercer.tabular_models.table import Table
from mercer.tabular_models.table_classifier import TableClassifier

# Probabilities are raised to this number before their logarithm is taken.
SMALLEST_PROBABILITY = 1e-12


def with_latents(fits: list[Fit], table: Table, output_scale: float | None, deadline: Deadline) -> list[Fit]:
    """Return fits whose machines are latent functions, with a sharpness that is chosen on left-out rows.

    When the time is up, the search for the output scale ends, and Newton's method stops after its first step.
    """
    machines: list[LatentMachine] = []
    for fit in fits:
        near = machines[-1].output_scales[0] if machines else FIRST_SCALE
        if output_scale is None:
            scale = best_scale(fit.machine, table, near, partial(deadline.is_over, OUTPUT_SCALES_UNTIL))
        else:
            scale = Scale(output_scale, None)
        out_of_time = partial(deadline.is_over, NEWTON_STEPS_UNTIL)
        machines.append(latent_machine(fit.machine, table, scale.value, scale.coefficients, out_of_time))
    latents = [left_out_of(machine, fit.judgments, table) for machine, fit in zip(machines, fits, strict=True)]
    offsets = torch.from_numpy(np.log(table.center))
    factors = best_sharpness(latents, [machine.share for machine in machines], offsets)
    found = [machine.changed(**factors._asdict()) for machine in machines]
    return [fit._replace(machine=machine) for fit, machine in zip(fits, found, strict=True)]


class GPClassifier(TableClassifier):
    __doc__ = f"""Classify by the softmax of Gaussian processes, one for each class, whose metric is learned.

    Kernel, warp, bandwidth and metric are those that `RFMClassifier` would choose. With these, Laplace's approximation
    gives the posterior of the latent functions, and probabilities are averaged over it. Far from all rows they
    therefore return to the shares of the classes, and they are less certain where there are few rows. Their overall
    sharpness is chosen on left-out rows, which the metric was not learned from.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        The kernel. It and the parameters down to `n_jobs`, except `output_scale`, are those of `RFMClassifier`.
    metric : {{"auto", "identity", "diagonal", "full", "ard"}}, default="auto"
        How the metric is learned; "auto" compares all those that suit the kernel.
    warp : {{"auto", "none", "log", "rank"}} or sequence of these, default="auto"
        The transformation of the columns: one for all, or a sequence with one for each.
    bandwidth : float, "median", "auto" or None, default="auto"
        The bandwidth of the kernel; "auto" searches multiples of the median distance.
    output_scale : float or "auto", default="auto"
        The prior variance of the latent functions. "auto" maximizes the evidence.
    n_iter : int, default=2
        Number of steps of the recursion that learns the metric.
    average : bool, default=True
        Whether to average the best machines.
    iterate : {{"auto", "last"}}, default="auto"
        Which step of the recursion is kept: the best on left-out rows, or the last.
    standardize : bool, default=True
        Whether to standardize the columns after the warp.
    time_limit : float or None, default=None
        Approximate time limit for `fit`, in seconds.
    n_jobs : int or None, default=None
        Number of threads that try settings in parallel.
    random_state : int, RandomState instance or None, default=None
        Determines which rows the search uses.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of rows, in MiB.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by which the weights of their rows are multiplied.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, in sorted order.
    loo_score_ : float
        The accuracy on left-out rows of the average of machines that the search has found.
    {FITTED.strip()}

    Notes
    -----
    Let c be the number of classes and n the number of rows of a leaf: all rows if there are at most 4000, and at most
    1500 otherwise. In addition to the search, `fit` takes O(c n^2) time for each of some hundred matrix products, and
    O(c 500^3) for its choices. The first prediction takes O(c n^3) time and O(c n^2) memory for the variances of the
    latent functions. Two classes need one function only: O(n^3) and O(n^2). In leaves with more than two classes, all
    functions share one variance, which is computed from 500 rows of the leaf.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import GPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GPClassifier("gaussian", "identity", warp="none", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    machines_: list[LatentMachine]  # type: ignore[assignment]
    # Latent functions maximize another likelihood than a trend does.
    _follows_trends = False
    _sums_over_all_rows = False

    # The search reads these attributes of a table model; this classifier has no parameters for them.
    shared_noise = 0.0
    n_landmarks = "auto"
    landmarks = "uniform"

    # The metric is given by name only: the likelihood of classes has no closed form, and squared errors choose it.
    _learners = ()

    def __init__(
        self,
        kernel: Any = "auto",
        metric: str = "auto",
        *,
        warp: Any = "auto",
        bandwidth: Any = "auto",
        output_scale: Any = "auto",
        n_iter: int = 2,
        average: bool = True,
        iterate: str = "auto",
        standardize: bool = True,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.warp = warp
        self.bandwidth = bandwidth
        self.output_scale = output_scale
        self.n_iter = n_iter
        self.average = average
        self.iterate = iterate
        self.standardize = standardize
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GPClassifier":
        """Learn from the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Classes, of any type.
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two identical rows.

        Returns
        -------
        self
        """
        deadline = Deadline(self.time_limit)
        classes, table, rows = self._labeled_table(X, y, sample_weight)
        learned = self._learn(table, ClassFitter(table.center), None, deadline.part(SEARCH_OF_A_CLASSIFIER_UNTIL))
        scale = None if self.output_scale == "auto" else float(self.output_scale)
        fits = with_latents(learned.fits, table, scale, deadline)
        if learned.is_complete and deadline.was_asked_in_vain:
            self._warn_about_time("the latent functions were found: they are near the mode", "lets them converge")
        outputs, targets, weights = LeftOutAverage.from_learned(learned)
        right = (targets + table.center)[np.arange(len(outputs)), (outputs + table.center).argmax(axis=1)]
        self._publish(learned._replace(fits=fits), table, rows)
        self.classes_, self.center_ = classes, np.log(table.center)
        self.loo_score_ = float(np.average(right, weights=weights))
        return self

    @wherever_rows_are
    @finite_answers
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        X = self._validated(X)
        return average_probabilities(self.machines_, X, self.working_memory, self.device)

    @wherever_rows_are
    @answers_without_nan
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities of the classes, of shape (n, n_classes)."""
        return np.log(np.maximum(self.predict_proba(X), SMALLEST_PROBABILITY))

    @wherever_rows_are
    @answers_without_nan
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log probabilities of the classes; for two classes the second minus the first, of shape (n,)."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def _check_parameters(self) -> None:
        self._check_common()
        if self.output_scale != "auto":
            check_number("output_scale", self.output_scale, above=0.0)
