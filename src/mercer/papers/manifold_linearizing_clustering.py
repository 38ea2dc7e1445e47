"""Ding, Tong, Chan, Dai, Ma, Haeffele: Unsupervised Manifold Linearizing and Clustering (MLC, and NMCE), as printed."""

from typing import Any

from mercer.clustering.manifold.manifold_clustering import ManifoldClustering
from mercer.clustering.manifold.nmce import NMCE
from mercer.training import Recipe
from mercer.views import Blur, Chain, Color, Crop, Flip, Gray

# Augmentation 1 of the appendix. The strengths of the color jitter are torchvision's names for the same four changes.
AUGMENTATION = Chain(
    [
        Crop(smallest=0.04),
        Flip(probability=0.5),
        Gray(probability=0.2),
        Color(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8),
        Blur(probability=0.1),
    ]
)
# The trainings of line 1 and of lines 3 to 9 (appendix D.2). No schedule is printed, so learning rates are constant.
START = Recipe(
    n_epochs=1000,
    batch_size=1024,
    optimizer="lars",
    learning_rate=0.3,
    final_learning_rate=0.3,
    keep="last",
)
SECOND = Recipe(
    n_epochs=50,
    batch_size=1024,
    optimizer="sgd",
    learning_rate=1e-2,
    final_learning_rate=1e-2,
    momentum=0.9,
    weight_decay=5e-4,
    keep="last",
)
# Appendix E, for both methods: 100 epochs of LARS at 0.3, which falls to 0 by a cosine; ε^2 = 0.2.
TABLE_6 = Recipe(n_epochs=100, batch_size=1024, optimizer="lars", learning_rate=0.3, keep="last")
SHARED: dict[str, Any] = {
    "backbone": "resnet18",
    "n_components": 128,
    "hidden": 4096,
    "epsilon_start": 0.2**0.5,
    "augment": AUGMENTATION,
    "n_views": 2,
    "freeze": True,
    "start_recipe": START,
}


def mlc(n_clusters: int, **changed: Any) -> ManifoldClustering:
    """Return `ManifoldClustering` with the settings of the paper.

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    ResNet-18 (3.2, D.2)                                              `backbone="resnet18"`
    d = 128 (3.1)                                                     `n_components=128`
    A = 2 augmentations (3.1), those of Augmentation 1                `n_views=2`, `augment=AUGMENTATION`
    line 1, (5): ε² = 0.2 (D.2)                                       `epsilon_start`
    line 1: LARS at 0.3, 1000 epochs of batches of 1024 (D.2)         `start_recipe`
    line 2: the cluster head is a copy of the feature head            always
    (4): ε² = 0.1, γ = 0.05 (D.2)                                     `epsilon`, `gamma`
    (4): γ/2 times the squared norm of Π (D.2)                        `regularizer="squared"`
    Π = P_η(CᵀC) (2.3)                                                `affinity="inner"`
    P_η by Sinkhorn's scaling, η = 0.175 (2.3, D.2)                   `projection="entropy"`, `eta`
    the backbone is fixed (D.2)                                       `freeze=True`
    a batch updates each head once (D.2)                              `recipe`
    SGD at 0.01 with momentum 0.9 and decay 5e-4 (D.2)                `recipe`
    line 10: spectral clustering of Π at the same η                   `assign_labels="spectral"`, `eta`
    line 10: no sample is moved afterwards                            `assign_labels="spectral"`
    the output is that of the last step                               `result="final"`, `keep="last"` of the recipes
    ================================================================  ==================================================

    The paper leaves some settings open:

    - λ of (5) is the largest value of R here, d log(1 + 1/ε²), which is 229 for d = 128. The code of NMCE, from which
      (5) is taken, has 200 in these units. In three dimensions, 200 makes all features collapse.
    - Lines 3 to 9 last 50 epochs, which Figure 3 seems to show.
    - The heads are "a few affine layers with non-linearity": an affine map to 4096, a ReLU and an affine map.
    - Learning rates are constant, and the start has no weight decay.
    - Line 10 uses at most 10 000 samples (`max_rows`), since Π is a matrix of all pairs. This is the size whose time
      C.3 gives. Each of the other samples joins the cluster in which its membership is largest.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    **changed
        Parameters of `ManifoldClustering`, which replace those above. For rows that are already features, use
        `backbone=None` with `augment="auto"` or `fit_views`. For Table 6, use `epsilon=0.2**0.5, recipe=TABLE_6`. For
        the manifolds of D.1, use `backbone=None, n_components=3, hidden=100, augment="noise"`.

    Examples
    --------
    >>> from mercer.papers import mlc
    >>> mlc(10).eta
    0.175
    """
    printed = {
        **SHARED,
        "affinity": "inner",
        "projection": "entropy",
        "eta": 0.175,
        "epsilon": 0.1**0.5,
        "gamma": 0.05,
        "regularizer": "squared",
        "recipe": SECOND,
        "assign_labels": "spectral",
        "result": "final",
        "max_rows": 10_000,
    }
    return ManifoldClustering(n_clusters, **{**printed, **changed})


def nmce(n_clusters: int, **changed: Any) -> NMCE:
    """Return `NMCE` with the settings of Table 6 in the paper on MLC.

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    start of MLC (E: "this very same initialization of features")     as in `mlc`
    memberships of points to clusters, random at first (2.2, E)       `n_init=1`
    ε² = 0.2 (E)                                                      `epsilon`
    100 epochs of LARS for the features (E)                           `recipe=TABLE_6`
    its learning rate: 0.3, falling to 0 by a cosine (E)              `recipe=TABLE_6`
    ================================================================  ==================================================

    The paper leaves some settings open. The membership is a softmax of a linear map of the features here. It is trained
    alone for 200 steps, and then together with the features by the same optimizer. λ is that of `mlc`. The NMCE of
    Table 2 also trains the backbone: use `freeze=False`.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    **changed
        Parameters of `NMCE`, which replace those above.

    Examples
    --------
    >>> from mercer.papers import nmce
    >>> nmce(10).n_init
    1
    """
    return NMCE(n_clusters, **{**SHARED, "epsilon": 0.2**0.5, "n_init": 1, "recipe": TABLE_6, **changed})
