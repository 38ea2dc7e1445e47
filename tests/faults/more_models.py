"""Models whose files name the rarer classes: leaves and trends, views, solvers, kernels, expressions, pipelines."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer import views
from mercer.clustering import expression, subspace
from mercer.embedding import Alternate, Exact, Steps
from mercer.embedding.preconditioners import GaussNewton, Identity, KernelMatrix, White
from mercer.kernels import (
    Custom,
    Gaussian,
    Laplace,
    Matern52,
    NeuralTangent,
    Precomputed,
    ProductLaplace,
    ProductMatern32,
)
from mercer.networks import MLP
from mercer.tabular_models import finish, learned, learning, many_rows
from mercer.tabular_models.learned_on_all_rows import AverageGradients, MaximumLikelihood
from mercer.training import SGD, Adam, Recipe

N = 30
_random = np.random.RandomState(1)
X = _random.randn(N, 3)
Y = X[:, 0] + 0.1 * _random.randn(N)
CLASSES = np.array(["a", "b", "c"])[(Y > 0).astype(int) + (Y > 1)]
IMAGES = _random.rand(N, 4, 4)
COLORS = _random.rand(N, 6 * 6 * 3)
MACHINE = {"kernel": "laplace", "metric": "identity", "warp": "none", "n_iter": 1, "random_state": 0}
# Enough rows for levels of noise to be told apart, and for leaves where few rows are called many.
MORE = _random.randn(160, 3)
NOISY = np.sin(MORE[:, 0]) + np.exp(1.2 * MORE[:, 1]) * _random.randn(len(MORE))


def in_leaves(model, y):
    """Fit a model of a table as if its rows were many, so that each leaf has a machine of its own."""
    small = [(many_rows, "LEAF_ROWS", 60), (many_rows, "JUDGED_LEAF_ROWS", 60), (learning, "MOST_EXACT_ROWS", 100)]
    small += [(module, "MANY_ROWS", 100) for module in (learned, learning)]
    small += [(module, "METRIC_ROWS", 60) for module in (finish, learned)]
    with ExitStack() as stack:
        for module, name, value in small:
            stack.enter_context(patch.object(module, name, value))
        return model.fit(MORE, y)


def with_trend(model):
    """Give a fitted regression a trend beside its leaves: one is found in tables of tens of thousands of rows only."""
    model.trend_ = [model.machines_[0]]
    model.machine_rows_ = [model.machine_rows_[0], *model.machine_rows_]
    return model


def embedding_by(solver, loss="vicreg", rows=X, **options):
    """Fit an embedding by a solver."""
    return mercer.KernelEmbedding(loss, n_components=2, n_landmarks=8, solver=solver, random_state=0, **options).fit(
        rows
    )


def clusters_by(**options):
    """Fit a subspace clustering whose steps are objects."""
    return mercer.SubspaceClustering(2, n_iter=1, random_state=0, **options).fit(X)


GRAY = views.Chain([views.Affine(5.0), views.Elastic(0.5), views.Shift(1), views.Blur(), views.Flip(), views.Crop(0.9)])
COLOR = views.Reshaped(views.Chain([views.Color(), views.Gray(), views.Identity()]), (6, 6, 3))
ROWS_OF_VIEWS = views.Chain([views.FeatureDropping(), views.FeatureSwapping(), views.GaussianNoise()])

# What a file that names it asks for, by the name of the parameter.
OBJECTS = {"function": lambda x, z: x @ z.T}

MORE_MAKERS = {
    "GPRegressor-leaves": lambda: with_trend(in_leaves(mercer.GPRegressor(**MACHINE), MORE[:, 0])),
    "GPRegressor-noise": lambda: mercer.GPRegressor(**MACHINE).fit(MORE, NOISY),
    "GPRegressor-likelihood": lambda: mercer.GPRegressor(
        "matern52", MaximumLikelihood("ard"), warp="none", random_state=0
    ).fit(X, Y),
    "RFMRegressor-gradients": lambda: mercer.RFMRegressor(
        ProductLaplace(2.0), AverageGradients("diagonal"), warp="none", random_state=0
    ).fit(X, Y),
    "GPClassifier-leaves": lambda: in_leaves(mercer.GPClassifier(**MACHINE), np.round(MORE[:, 0]).clip(-1, 1)),
    "Pipeline": lambda: make_pipeline(MinMaxScaler(), StandardScaler(), PCA(2), mercer.RFMRegressor(**MACHINE)).fit(
        X, Y
    ),
    "Nystrom-network": lambda: mercer.Nystrom(
        NeuralTangent(MLP(3, (4,), random_state=0)), n_landmarks=5, random_state=0
    ).fit(X),
    "Nystrom-matrix": lambda: mercer.Nystrom(
        Precomputed(Laplace(1.0).matrix(X, X[:8])[:8]), landmarks=np.arange(8)
    ).fit(Laplace(1.0).matrix(X, X[:8])),
    "kernel-custom": lambda: Custom(OBJECTS["function"]),
    "kernel-products": lambda: ProductMatern32(1.5, metric=[1.0, 2.0, 3.0]) * Matern52(2.0),
    "KernelEmbedding-views": lambda: embedding_by(Exact(), "spectral_contrastive", IMAGES, augment=GRAY),
    "KernelEmbedding-colors": lambda: embedding_by(Exact(), "spectral_contrastive", COLORS, augment=COLOR),
    "KernelEmbedding-rows": lambda: embedding_by(
        Steps(1, optimizer=SGD(0.1), preconditioner=White()), augment=ROWS_OF_VIEWS
    ),
    "KernelEmbedding-newton": lambda: embedding_by(Steps(1, preconditioner=GaussNewton()), "barlow_twins"),
    "KernelEmbedding-matrix": lambda: embedding_by(Steps(1, optimizer=Adam(1e-3), preconditioner=KernelMatrix())),
    "KernelEmbedding-plain": lambda: embedding_by(Steps(1, preconditioner=Identity())),
    "KernelEmbedding-decoder": lambda: embedding_by(Alternate(1, 2), "kernel_autoencoder"),
    "KernelEmbedding-parts": lambda: mercer.KernelEmbedding(
        kernel=Gaussian(2.0), n_components=2, n_landmarks=8, ridge=0.1, bandwidth=None, augment="noise", random_state=0
    ).partial_fit(X),
    "MCR2-sgd": lambda: mercer.MCR2(hidden=6, recipe=Recipe(n_epochs=1, optimizer="sgd"), random_state=0).fit(
        X, CLASSES
    ),
    **{
        f"SubspaceClustering-{i}": (lambda options=options: clusters_by(**options))
        for i, options in enumerate(
            [
                {"self_expression": expression.LassoExpression(), "affinity": subspace.PlainAffinity()},
                {
                    "self_expression": expression.LeastSquaresExpression(),
                    "affinity": subspace.DoublyStochasticAffinity(),
                    "feature_learning": subspace.Covariance(),
                },
                {
                    "self_expression": expression.LowRankExpression(),
                    "affinity": subspace.ScaledAffinity(),
                    "feature_learning": subspace.Precision(),
                },
                {"self_expression": expression.MatchingPursuitExpression(2)},
            ]
        )
    },
}
MORE_ROWS = {
    "KernelEmbedding-views": IMAGES[:2],
    "KernelEmbedding-colors": COLORS[:2],
    "Nystrom-matrix": Laplace(1.0).matrix(X[:2], X[:8]),
}
