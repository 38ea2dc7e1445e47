"""Models in a notebook: their pictures say what was chosen, and transforms give data frames where asked."""

import numpy as np
import pandas as pd

import mercer


def test_the_picture_of_a_fitted_model_says_what_was_chosen():
    random = np.random.default_rng(0)
    X, noise = random.normal(size=(40, 3)), random.normal(size=40)
    for model in (
        mercer.RFMRegressor("gaussian", "identity", warp="none", n_iter=1, random_state=0),
        mercer.GPRegressor("gaussian", "identity", warp="none", random_state=0),
        mercer.KernelDiscriminant(),
    ):
        y = X[:, 0] > 0 if isinstance(model, mercer.KernelDiscriminant) else X[:, 0] + 0.3 * noise
        assert "kernel_" not in model._repr_html_()
        page = model.fit(X, y)._repr_html_()
        assert "kernel_" in page
        assert "ridge_" in page


def test_transforms_give_data_frames_where_asked():
    table = pd.DataFrame({"size": np.arange(30.0), "city": ["Oslo", "Rome", None] * 10}, index=np.arange(30) + 5)
    model = mercer.tabular(mercer.Nystrom(n_landmarks=4, random_state=0)).set_output(transform="pandas").fit(table)
    made = model.transform(table)
    assert list(made.columns) == list(model.get_feature_names_out())
    assert made.index.tolist() == table.index.tolist()
