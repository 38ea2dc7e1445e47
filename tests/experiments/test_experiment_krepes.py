"""The experiment on embeddings: the same rows for everyone, the paper's table beside ours, claims that can fail."""

import io
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.utils.flop_counter import FlopCounterMode

from experiments import Experiment, Results
from experiments import data as shared_data
from experiments.claims import judge
from experiments.krepes import cases as all_cases
from experiments.krepes import (
    concept_cases,
    concept_runs,
    contestants,
    experiment,
    network_embedding,
    networks,
    paper,
    runs,
    step_cases,
    tables,
)
from experiments.krepes.cases import CONTESTANTS, DEFAULT, RAW, SAME_WIDTH, on, row_of_table_5
from experiments.krepes.step_cases import STARTED
from experiments.report import make_report
from experiments.runner import cases_of, load, run
from mercer import KernelEmbedding, Nystrom, datasets
from mercer.embedding import Steps
from mercer.embedding.trained_losses import make_objective
from mercer.kernels import Gaussian
from mercer.landmarks import METHODS
from mercer.training import SGD, Adam
from mercer.views.sources import Augmented


@pytest.mark.parametrize("quick", [True, False])
def test_cases_are_consistent(quick):
    found = {case.name: case for case in cases_of(experiment.EXPERIMENT, quick, None)}
    sets = all_cases.QUICK if quick else all_cases.FULL
    m, h = all_cases.QUICK_SIZES if quick else all_cases.FULL_SIZES
    for label, data in sets.items():
        for name in CONTESTANTS:
            case = found[on(label, name)]
            assert case.key
            assert case.settings["data"] == {"name": data.name, "n_train": data.n_train, "n_test": data.n_test}
            assert case.seeds == data.seeds
        default = KernelEmbedding(**found[on(label, DEFAULT)].settings["options"])
        assert (default.n_landmarks, default.n_components) == (m, h)
        # Nothing but the sizes and the shape of an image is stated: the rest are the defaults.
        changed = {k: v for k, v in default.get_params().items() if v != KernelEmbedding().get_params()[k]}
        assert set(changed) <= {"n_landmarks", "n_components", "image_shape"}
        assert found[on(label, SAME_WIDTH)].settings["options"] == {"n_components": h}
    table_5 = "digits" if quick else "mnist"
    for loss, landmarks in paper.TABLE_5:
        options = found[on(table_5, row_of_table_5(loss, landmarks))].settings["options"]
        assert (options["loss"], options["landmarks"]) == (loss, landmarks)
        assert options["landmarks"] in METHODS
    n_steps = len(step_cases.step_cases(quick))
    n_concepts = len(concept_cases.concept_cases(quick))
    assert len(found) == len(sets) * len(CONTESTANTS) + len(paper.TABLE_5) + n_steps + n_concepts
    started = "digits" if quick else STARTED
    for loss in step_cases.BY_STEPS:
        options = found[on(started, step_cases.by_steps(loss, "principal"))].settings["options"]
        assert options["loss"] == loss
        assert options.get("steps", {"start": "principal"})["start"] == "principal"
        assert ("steps" in options) == (loss != "kernel_autoencoder")


@pytest.mark.parametrize("quick", [True, False])
def test_what_is_trained_by_steps_is_what_it_is_called(quick):
    found = {case.name: case.settings for case in step_cases.step_cases(quick)}
    assert len(found) == len(step_cases.step_cases(quick))
    for name, settings in found.items():
        options = settings["options"]
        if settings["contestant"] == "network":
            assert contestants.network_embedding(options, 784, 0).loss in paper.TABLE_1_LOSSES
            continue
        model = contestants.contestant("KernelEmbedding", dict(options), np.zeros((2, 1)), 0)
        assert model.loss == options["loss"]
        if model.loss == "kernel_autoencoder":
            assert model.solver == "auto"
            continue
        assert model.solver.redraw == ("beside networks" in name)
        if "under preconditioner" in name:
            assert name.endswith(model.solver.preconditioner)
            assert isinstance(model.solver.optimizer, SGD) == (model.solver.preconditioner == "gauss_newton")
        if "beside networks" in name:
            assert name.endswith(step_cases.GAUSSIAN)
            assert model.kernel == "gaussian"
    for label, data in all_cases.QUICK.items() if quick else all_cases.FULL.items():
        named = [name for name in found if name.startswith(on(label, "")) and "beside networks" in name]
        assert bool(named) == (label == "digits" or label in (*step_cases.BESIDE, "mnist"))
        assert all(step_cases.network_of(data) in name or name.endswith("kernel") for name in named)


def test_the_full_runs_have_the_seeds_and_sizes_that_the_claims_speak_of():
    assert all_cases.FULL_SIZES == (1000, 150)
    assert all_cases.FULL["mnist"].seeds == 3
    assert all(data.seeds >= 2 for data in all_cases.FULL.values())
    assert len(all_cases.FULL | step_cases.DRAWS | all_cases.QUICK) == 13
    assert step_cases.DRAWS[STARTED].seeds == 3
    assert all(label == f"{data.name} {data.n_train:,}".replace(",", " ") for label, data in step_cases.DRAWS.items())


def test_images_become_rows_and_the_draw_keeps_labels_with_them(monkeypatch):
    images = np.random.default_rng(0).random((30, 4, 4, 3))
    y = np.arange(30)
    monkeypatch.setattr(datasets, "load", lambda name: datasets.Dataset(images, y, images[:9], y[:9]))
    X, labels, X_test, labels_test = shared_data.prepared("cifar10", 12, 5, 1)
    assert (X.shape, X_test.shape, X.dtype) == ((12, 48), (5, 48), np.float32)
    np.testing.assert_allclose(X, images[labels].reshape(12, -1), rtol=1e-6)
    np.testing.assert_allclose(X_test, images[labels_test].reshape(5, -1), rtol=1e-6)


def test_contestants_have_the_bandwidths_that_are_said():
    X = np.random.default_rng(0).standard_normal((80, 3))
    upper = np.triu_indices(80, 1)
    median = np.median(np.linalg.norm(X[:, None] - X, axis=2)[upper])
    assert contestants.contestant("raw", {}, X, 0) is None
    assert contestants.contestant("Nystroem", {"n_components": 5}, X, 0).gamma == pytest.approx(0.5 / median**2)
    start = contestants.contestant("Nystrom", {"n_landmarks": 9, "n_components": 5}, X, 0)
    assert isinstance(start, Nystrom)
    assert start.bandwidth == pytest.approx(0.5 * median)
    some = contestants.contestant("KernelPCA", {"n_components": 5, "most_rows": 40}, X, 0).fit(X)
    assert some.transformer.gamma == pytest.approx(0.5 / median**2)
    assert some.transformer.X_fit_.shape == (40, 3)


def test_blocks_of_rows_are_mapped_as_all_together(monkeypatch):
    X = np.random.default_rng(0).standard_normal((50, 3))
    some = contestants.contestant("KernelPCA", {"n_components": 4, "most_rows": 100}, X, 0).fit(X)
    monkeypatch.setattr(contestants, "ROWS_A_BLOCK", 7)
    np.testing.assert_allclose(some.transform(X), some.transformer.transform(X))


def small_digits(name, n_train, n_test, seed):
    X, y = load_digits(return_X_y=True)
    rows = np.random.RandomState(seed).permutation(len(X))
    train, test = rows[:400], rows[400:500]
    return X[train] / 16, y[train], X[test] / 16, y[test]


def test_a_run_from_end_to_end(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "prepared", small_digits)
    data, sizes = all_cases.Data("digits", image_shape=(8, 8), seeds=1), all_cases.Sizes(60, 10)
    made = Experiment(
        "krepes", "", lambda quick: all_cases.set_cases("digits", data, sizes), experiment.CLAIMS, tables.tables
    )
    outcome = run(made, tmp_path, quick=True, progress=io.StringIO())
    assert outcome.failed == 0
    for name in CONTESTANTS:
        assert 0.5 < outcome.results.mean(on("digits", name), "accuracy") <= 1
        assert outcome.results.mean(on("digits", name), "labeled rows") == 40
    (kappa,) = outcome.results.values(on("digits", DEFAULT), "kappa")
    assert 10 <= kappa <= 60
    assert 0.2 < outcome.results.mean(on("digits", DEFAULT), "top 3 of the class") <= 1
    report = make_report(made, outcome, quick=True)
    assert all(verdict.status == "not run" for verdict in report.verdicts)
    by_title = {table.title: table for table in report.tables}
    assert all(all(row) for row in by_title["Accuracy of the probe, 10 % of the labels"].rows)
    assert [row[0] for row in by_title["Landmarks"].rows] == [on("digits", DEFAULT)]


def test_landmarks_that_are_of_the_class_are_counted(monkeypatch):
    class Model:
        """Two landmarks at 0 and 1, the second far heavier."""

        landmark_indices_ = np.array([1, 2])
        landmarks_ = np.array([[0.0], [1.0]])
        coefficients_ = np.array([[0.1], [10.0]])

        class kernel_:
            @staticmethod
            def matrix(X, Z):
                return np.exp(-np.abs(X - Z.T))

        @classmethod
        def top_landmarks(cls, X, n_landmarks):
            influence = cls.kernel_.matrix(X, cls.landmarks_) * np.abs(cls.coefficients_[:, 0])
            return np.argsort(-influence, axis=1)[:, :n_landmarks]

    monkeypatch.setattr(runs, "TOP", 1)
    y = np.array([7, 0, 1])
    measured = runs.interpretation(Model, y, np.array([[0.0], [1.0]]), np.array([0, 1]))
    assert measured == {
        "kappa": 2,
        "kappa of a random order": pytest.approx(2),
        "top 3 of the class": 0.5,
        "top 3 by the kernel alone": 1.0,
    }


def fake_results(changed=None, quick=False):
    """Results of every case that bear out every claim: the default ahead, Table 5 a little above the paper's."""
    records, seeds = {}, {}
    for case in experiment.all_cases(quick):
        name = case.name.partition(": ")[2]
        options = case.settings["options"]
        accuracy = 0.97 if name == DEFAULT else 0.9
        steps, by_steps = options.get("steps", {}), "steps" in options or "by steps" in name
        if by_steps:
            accuracy = {"principal": 0.951, "random": 0.94}.get(steps.get("start", "principal"), 0.94)
            accuracy = 0.94 if name == step_cases.UNTRAINED else accuracy
        if "beside networks" in name:
            accuracy = 0.94
        if "preconditioner" in steps:
            accuracy = 0.9 if steps["preconditioner"] == "identity" else 0.95
        elif by_steps or case.settings["contestant"] == "network":
            pass
        elif "loss" in options:
            accuracy = paper.TABLE_5[options["loss"], options.get("landmarks", "uniform")] + 0.001
        measures = {"accuracy": accuracy, "balanced accuracy": accuracy - 0.1, "fit seconds": 1.0, "parameters": 7}
        if case.settings["contestant"] == "KernelEmbedding":
            measures |= {"kappa": 20, "kappa of a random order": 27, "bandwidth": 5.0, "components": 150}
            measures |= {"top 3 of the class": 0.9, "top 3 by the kernel alone": 0.8}
            measures["effective rank"] = 9.0 if steps.get("preconditioner") == "identity" else 10.0
        if case.run is concept_runs.run_digits:
            auc = 0.4 if name == "pixels" else 0.6
            measures = dict.fromkeys((concept_cases.LOOP, concept_cases.LOOP_SAME, concept_cases.SLANT), auc)
        elif case.run is concept_runs.run_border:
            measures = {f"{concept}: accuracy": 0.9 for concept in ("border", "blue surroundings")}
            for concept in ("border", "blue surroundings"):
                measures[f"{concept}: p of the class with the border"] = 0.01
                measures[f"{concept}: other classes that are significant"] = 0.0
        seeds[case.name] = case.seeds
        for seed in range(case.seeds):
            records[case.name, seed] = {"measures": measures | (changed or {}).get(case.name, {})}
    return Results(seeds, records)


def statuses(results):
    return {claim.text: judge(claim, results).status for claim in experiment.CLAIMS}


def test_claims_hold_on_results_made_to_bear_them_out():
    found = statuses(fake_results())
    assert set(found.values()) == {"held"}
    assert len(found) == len(experiment.CLAIMS)


def test_claims_about_the_full_sets_are_not_run_in_quick():
    assert set(statuses(fake_results(quick=True)).values()) == {"not run"}


@pytest.mark.parametrize(
    ("case", "measures", "claim"),
    [
        (on("mnist", DEFAULT), {"accuracy": 0.959}, "mnist: the default at 96 %"),
        (on("adult", RAW), {"accuracy": 0.98}, "adult: the default above raw inputs"),
        (on("covtype", SAME_WIDTH), {"balanced accuracy": 0.98}, "same width in balanced accuracy"),
        (on("mnist", "kernel_pca, leverage"), {"accuracy": 0.976}, "Table 5: kernel_pca, leverage"),
        (on("mnist", "simple_contrastive, kmeans++"), {"accuracy": 0.88}, "kmeans++ landmarks better than uniform"),
        (on("cifar10", DEFAULT), {"kappa": 28}, "cifar10: fewer landmarks"),
        (on("mnist", DEFAULT), {"top 3 of the class": 0.7}, "mnist: the top 3 landmarks"),
        (on(STARTED, step_cases.UNTRAINED), {"accuracy": 0.952}, "losses by steps above their start"),
        (
            on("adult 5 000", step_cases.preconditioned("simclr", "kernel")),
            {"accuracy": 0.89},
            "Table 2: adult 5 000, simclr",
        ),
        (
            on("covtype 5 000", step_cases.preconditioned("barlow_twins", "identity")),
            {"effective rank": 11.0},
            "Figure 1: covtype 5 000, effective rank of A under barlow_twins with preconditioner gauss_newton",
        ),
        (on("cifar10", step_cases.beside_networks("byol", "ResMLP")), {"accuracy": 0.96}, "Table 1: cifar10, byol"),
        (on(STARTED, step_cases.by_steps("byol", "random")), {"accuracy": 0.96}, "Table 4: byol"),
        (on(concept_cases.DIGITS, "Nystrom"), {concept_cases.LOOP: 0.3}, "Nystrom: 'loop' carries over"),
        (
            on(concept_cases.BORDER, "Nystrom"),
            {"border: p of the class with the border": 0.06},
            "Nystrom: the border shows",
        ),
        (
            on(concept_cases.BORDER, "KernelEmbedding"),
            {"border: other classes that are significant": 1.0},
            "KernelEmbedding: the border shows",
        ),
    ],
)
def test_each_claim_can_fail(case, measures, claim):
    found = statuses(fake_results({case: measures}))
    assert any(claim in text for text, status in found.items() if status == "not held")


def test_tables_are_filled_where_there_are_results():
    for quick in (False, True):
        made = tables.tables(fake_results(quick=quick))
        for table in made:
            assert all(len(row) == len(table.columns) for row in table.rows)
            assert all(all(row) for row in table.rows)
        titles = [table.title for table in made]
        assert ("Table 5: accuracy on digits" in " ".join(titles)) == quick


def test_loops_slant_and_borders_are_what_they_are_called():
    ring, stroke = np.zeros((2, 9, 9))
    ring[2:7, 2:7] = 1.0
    ring[3:6, 3:6] = 0.0
    stroke[2:7, 4] = 1.0
    assert concept_runs.has_loop(np.stack([ring, stroke])).tolist() == [True, False]
    leaning = np.eye(9)[::-1]  # from the lower left to the upper right
    right, upright, left = concept_runs.slant(np.stack([leaning, stroke, np.eye(9)]))
    assert right == pytest.approx(1.0)
    assert upright == pytest.approx(0.0)
    assert left == pytest.approx(-1.0)
    for seed in range(20):
        first, second = concept_runs.two_fives(seed)
        assert sorted([*first, *second]) == list(range(10))
        assert len(set(first) & set(concept_runs.WITH_LOOP)) == 2
    X = np.random.default_rng(0).uniform(size=(2, 32 * 32 * 3))
    images = concept_runs.bordered(X).reshape(2, 32, 32, 3)
    np.testing.assert_allclose(images[:, 2, 17], [concept_runs.BLUE_PIXEL] * 2)
    np.testing.assert_array_equal(images[:, 3:-3, 3:-3], X.reshape(2, 32, 32, 3)[:, 3:-3, 3:-3])


def test_the_experiment_loads_by_its_name():
    assert load("krepes") is experiment.EXPERIMENT


def naive_resmlp(net, x):
    """Algorithm 1 of appendix B.2, with attention in full over the tokens of a sequence, of which there is one."""
    gelu = torch.nn.functional.gelu
    x = gelu(net.inputs(x))
    tokens = net.norm(x)[:, None, :]
    queries, keys, values = (layer(tokens) for layer in (net.attention.query, net.attention.key, net.attention.value))
    weights = torch.softmax(queries @ keys.mT / x.shape[1] ** 0.5, dim=2)
    x = x + (weights @ values)[:, 0]
    for block in net.blocks:
        first, _, second = block
        x = gelu(x + second(gelu(first(x))))
    return net.outputs(x)


def test_networks_are_those_of_the_paper():
    x = torch.randn(7, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    net = networks.ResMLP(10, 8, 3).double()
    assert [tuple(layer.weight.shape) for layer in net.blocks[2][::2]] == [(2, 8), (8, 2)]
    assert len(net.blocks) == 3
    torch.testing.assert_close(net(x), naive_resmlp(net, x))
    parameters = list(net.parameters())
    for ours, naive in zip(
        *(torch.autograd.grad(f.square().sum(), parameters, allow_unused=True) for f in (net(x), naive_resmlp(net, x))),
        strict=True,
    ):
        torch.testing.assert_close(torch.zeros_like(naive) if ours is None else ours, naive)
    plain = networks.MLP((10, 6, 5, 3)).double()
    expected = x
    for layer in plain.layers[:-1:2]:
        expected = torch.nn.functional.gelu(expected @ layer.weight.T + layer.bias)
    torch.testing.assert_close(plain(x), expected @ plain.layers[-1].weight.T + plain.layers[-1].bias)
    assert plain(x).shape == net(x).shape == (7, 3)


@pytest.mark.parametrize("d", [110, 54])
def test_parameters_are_counted_as_the_paper_counts_them(d):
    assert networks.parameters_of(networks.ResMLP(d, 1032, 150)) == pytest.approx(5e6, rel=0.1)
    sizes = (784, 1000, 1000, 150)
    assert networks.parameters_of(networks.MLP(sizes)) == sum((a + 1) * b for a, b in pairwise(sizes))


def multiply_adds(function):
    """Those of all matrix products of a call, as torch counts them."""

    def added_product(_, a, b, **options):  # in place, which torch leaves out
        return 2 * a[0] * a[1] * b[1]

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: added_product}) as counter:
        function()
    return counter.get_total_flops() / 2


def test_costs_are_those_of_the_products_that_are_made():
    n, d, m, r, h = 9, 7, 13, 11, 5
    x, landmarks, B = torch.randn(n, d), torch.randn(m, d), torch.randn(m, r)
    W = torch.randn(r, h, requires_grad=True)
    kernel = Gaussian(2.0)
    z = kernel.prepare(landmarks)

    def step():
        (kernel.values(kernel.prepare(x, beside=z), z) @ B @ W).sum().backward()

    assert multiply_adds(step) == n * networks.kernel_cost(d, h, m, r)
    assert networks.kernel_cost(d, h, m) == networks.kernel_cost(d, h, m, m)
    for n_blocks, bottleneck in ((3, 4), (2, 3)):
        net = networks.ResMLP(d, 24, h, n_blocks, bottleneck)
        cost = networks.resmlp_cost(d, h, 24, n_blocks, bottleneck)
        assert multiply_adds(lambda net=net: net(x).sum().backward()) == n * cost


@pytest.mark.parametrize("rank", [None, 60])
@pytest.mark.parametrize(("n_blocks", "bottleneck"), [(3, 4), (1, 5)])
@pytest.mark.parametrize(("d", "h", "m"), [(110, 150, 1000), (54, 30, 300), (3072, 150, 1000)])
def test_the_width_is_the_largest_that_costs_no_more(d, h, m, n_blocks, bottleneck, rank):
    blocks = {"n_blocks": n_blocks, "bottleneck": bottleneck}
    width = networks.resmlp_width(d, h, m, rank=rank, **blocks)
    assert width % bottleneck == 0
    cost, next_cost = (networks.resmlp_cost(d, h, w, **blocks) for w in (width, width + bottleneck))
    assert cost <= networks.kernel_cost(d, h, m, rank) < next_cost


def test_networks_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="n_landmarks=1 "):
        networks.resmlp_width(50, 100, 1)
    with pytest.raises(ValueError, match="width=10 .*multiple of bottleneck=4"):
        networks.ResMLP(5, 10, 3)
    with pytest.raises(ValueError, match="widths"):
        networks.MLP([5])
    with pytest.raises(ValueError, match="kernel_pca"):
        contestants.contestant("network", {**NETWORK, "loss": "kernel_pca"}, ROWS, 0).fit(ROWS)


ROWS = load_digits().data[:200] / 16.0
NETWORK = {
    "architecture": "resmlp",
    "width": 16,
    "loss": "simclr",
    "n_components": 5,
    "image_shape": [8, 8],
    "recipe": {"n_epochs": 3, "batch_size": 64, "learning_rate": 3e-3},
}


def fitted_network(seed=0, rows=ROWS, **options):
    return contestants.contestant("network", {**NETWORK, **options}, rows, seed).fit(rows)


@pytest.mark.parametrize("loss", paper.TABLE_1_LOSSES)
def test_networks_lower_every_loss(loss):
    model = fitted_network(loss=loss, recipe={**NETWORK["recipe"], "n_epochs": 8})
    losses = [record["loss"] for record in model.history_]
    assert losses[-1] < 0.97 * losses[0]
    assert model.transform(ROWS).shape == (200, 5)


@pytest.mark.parametrize("loss", ["simclr", "byol"])
def test_a_network_is_a_function_of_its_seed(loss):
    state = torch.get_rng_state()
    first = fitted_network(loss=loss).transform(ROWS)
    torch.rand(3)
    np.testing.assert_array_equal(fitted_network(loss=loss).transform(ROWS), first)
    torch.set_rng_state(state)
    assert np.abs(fitted_network(1, loss=loss).transform(ROWS) - first).max() > 1e-2
    assert torch.equal(torch.get_rng_state(), state)


def test_networks_map_each_row_by_itself(monkeypatch):
    model = fitted_network()
    Z = model.transform(ROWS)
    assert Z.dtype == np.float64
    np.testing.assert_allclose(model.transform(ROWS[[17, 3]]), Z[[17, 3]], rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(network_embedding, "ROWS_A_BLOCK", 7)
    np.testing.assert_allclose(model.transform(ROWS), Z, rtol=1e-9, atol=1e-12)
    single = fitted_network(rows=ROWS.astype(np.float32))
    assert single.transform(ROWS).dtype == np.float32


def test_networks_see_the_views_that_the_kernel_embedding_sees():
    def views(fit):
        seen = []

        def noise(batch, generator):
            seen.append(batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype))
            return seen[-1]

        fit(noise)
        return seen

    steps = Steps(3, 64, Adam(3e-3), validation_fraction=0.0, guard=False, redraw=True)
    kernel = partial(KernelEmbedding, "simclr", n_landmarks=20, n_components=5, bandwidth=1.0, solver=steps)
    theirs = views(lambda augment: kernel(augment=augment, image_shape=(8, 8), random_state=4).fit(ROWS))
    ours = views(lambda augment: fitted_network(4, augment=augment))
    assert len(ours) == 2 * 3 * 4  # views, epochs, batches
    for own, other in zip(ours, theirs[-len(ours) :], strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=0)


def test_objectives_of_networks_follow_every_step(monkeypatch):
    calls = []
    objective = make_objective("simclr", 5, seed=0)
    objective.after_step = lambda model, step, total_steps: calls.append((step, total_steps))
    monkeypatch.setattr(network_embedding, "make_objective", lambda *_, **__: objective)
    fitted_network()
    assert calls == [(step, 12) for step in range(12)]


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 2, 3)])
def test_inputs_of_networks_are_standardized(shape):
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 12)) * np.linspace(1, 2, 12)
    if shape == (12,):
        X[:, 4] = 7.0
    inputs = network_embedding.Standardized(torch.nn.Identity(), X, shape)(torch.from_numpy(X)).numpy()
    # Tables by columns, gray images as a whole, color images by channels.
    for part in {(12,): inputs.T, (3, 4): [inputs], (2, 2, 3): [inputs[:, c::3] for c in range(3)]}[shape]:
        assert part.mean() == pytest.approx(0, abs=1e-12)
        assert part.std() == pytest.approx(1) or (part == 0).all()
    if len(shape) < 3:
        views = Augmented.fitted("auto", shape, X)
        np.testing.assert_allclose(inputs, (X - views.center) / views.scale, atol=1e-12)


def test_options_of_networks_say_what_they_are():
    options = {**NETWORK, "architecture": "mlp", "widths": [20, 10]}
    del options["width"]
    kept = {**options}
    model = contestants.contestant("network", options, ROWS, 0).fit(ROWS)
    assert options == kept
    layers = model.network_.network.layers[::2]
    assert [layer.weight.shape for layer in layers] == [(20, 64), (10, 20), (5, 10)]
    by_cost = {key: value for key, value in NETWORK.items() if key != "width"} | {"n_landmarks": 30}
    model = contestants.contestant("network", by_cost, ROWS, 0).fit(ROWS)
    assert model.network_.network.inputs.out_features == networks.resmlp_width(64, 5, 30)
    assert networks.parameters_of(model.network_) == networks.parameters_of(model.network_.network)
    with pytest.raises(ValueError, match="architecture='resnet'"):
        contestants.contestant("network", {**NETWORK, "architecture": "resnet"}, ROWS, 0)
    with pytest.raises(TypeError, match="widths"):
        contestants.contestant("network", {**NETWORK, "widths": [3]}, ROWS, 0)


def test_a_network_runs_from_end_to_end(monkeypatch):
    monkeypatch.setattr(runs, "prepared", small_digits)
    data = {"name": "digits", "n_train": None, "n_test": None}
    recipe = {"n_epochs": 10, "batch_size": 64, "learning_rate": 3e-3}
    options = {**NETWORK, "width": 64, "n_components": 20, "recipe": recipe}
    measures = runs.run({"data": data, "contestant": "network", "options": options}, 0)
    assert measures["accuracy"] > 0.6
    assert measures["labeled rows"] == 40
