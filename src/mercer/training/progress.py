"""Progress of a training through scikit-learn's callbacks, with one task for each epoch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int, dict[str, Any] | None], bool | None]
"""The function that the loop calls: (epoch, n_epochs, record), where record is None at the start of an epoch."""


@contextmanager
def fit_progress(
    estimator: Any,
    n_epochs: int,
    *,
    X: Any = None,
    y: Any = None,
    fitted: Callable[[], dict[str, Any]] | None = None,
    within: Any = None,
    task_name: str = "fit",
) -> Iterator[Progress]:
    """Return a `progress` for the loop that runs the callbacks of the estimator, one task for each epoch.

    The estimator must inherit from `sklearn.callback.CallbackSupportMixin`, and its `fit` must be decorated with
    `sklearn.callback.with_callbacks`. Users get a progress bar by `estimator.set_callbacks(ProgressBar())`. A callback
    may end the training. After a resume, the tasks begin at the epoch at which the training continues.

    Parameters
    ----------
    estimator : estimator that supports callbacks
    n_epochs : int
    X, y : array-likes, optional
        The data, for callbacks that ask for them.
    fitted : callable, optional
        () -> the fitted attributes with which a copy of the estimator can predict at this moment, for callbacks that
        compute scores.
    within : sklearn.callback.CallbackContext, optional
        The context of the whole fit, if a fit has several trainings. This training is then one task of it.
    task_name : str, default="fit"

    Examples
    --------
    >>> with fit_progress(self, recipe.n_epochs, X=X) as progress:  # doctest: +SKIP
    ...     train(module, batch_loss, len(X), recipe, seed=0, progress=progress)
    """
    data = {"estimator": estimator, "X": X, "y": y}
    new_task = estimator._init_callback_context if within is None else within.subcontext
    whole = new_task(task_name=task_name, max_subtasks=n_epochs)
    whole.call_on_fit_task_begin(**data)
    tasks: list[Any] = []

    def progress(epoch: int, n_epochs: int, record: dict[str, Any] | None) -> bool:
        if record is not None:
            return bool(tasks[epoch].call_on_fit_task_end(**data, reconstruction_attributes=fitted))
        while len(tasks) <= epoch:  # after a resume, earlier epochs get tasks too, so that the numbers are right
            tasks.append(whole.subcontext(task_name="epoch"))
        tasks[epoch].call_on_fit_task_begin(**data)
        return False

    yield progress
    whole.call_on_fit_task_end(**data, reconstruction_attributes=fitted)
