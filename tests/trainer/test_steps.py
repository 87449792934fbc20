"""Optimizers, loss scale, clipped gradients and mixed precision, each against NumPy."""

import pytest
from suite.needs import Later, needs_packages

ms, np, nn, ops = Later("mindspore"), Later("numpy"), Later("mindspore.nn"), Later("mindspore.ops")
models, optimizers = Later("tools.trainer.models"), Later("tools.trainer.optimizers")
steps, parallel = Later("tools.trainer.steps"), Later("tools.trainer.models.parallel")
loading = Later("tools.trainer.checkpoints.saving")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough, pytest.mark.trains]

RATES = [0.1, 0.2, 0.05, 0.1]
SECTION = {
    "momentum": 0.9,
    "nesterov": False,
    "eps": 1e-3,
    "lars_coefficient": 0.01,
    "lars_epsilon": 1e-5,
    "weight_decay": 0.1,
    "filter_bias_and_bn": True,
}
DYNAMIC = {"type": "dynamic", "loss_scale": 1024, "scale_factor": 2.0, "scale_window": 2}


@pytest.fixture(params=[0, 1], ids=["graph", "pynative"])
def mode(request):
    """MindSpore executes in this mode."""
    before = ms.get_context("mode")
    ms.set_device("CPU")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


def linear():
    """A Cell (data, label) -> squared error of data @ weight + bias, and both as they begin, as NumPy arrays."""

    class Linear(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = ms.Parameter(ms.Tensor(np.arange(6).reshape(2, 3) / 6 + 0.1, ms.float32), name="weight")
            self.bias = ms.Parameter(ms.Tensor(np.ones(3) / 2, ms.float32), name="bias")

        def construct(self, data, label):
            return ((ops.matmul(data, self.weight) + self.bias - label) ** 2).mean()

    return Linear(), [np.arange(6).reshape(2, 3) / 6 + 0.1, np.ones(3) / 2]


def batches():
    draw = np.random.default_rng(1)
    return [(draw.normal(size=(4, 2)), draw.normal(size=(4, 3))) for _ in RATES]


def gradients(values, data, label):
    off = 2 * (data @ values[0] + values[1] - label) / label.size
    return [data.T @ off, off.sum(0)]


def tensors(*arrays):
    return [ms.Tensor(array, ms.float32) for array in arrays]


def adamw(value, gradient, state, rate, decay, step):
    mean, square = state or (0, 0)
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
    value = value * (1 - rate * decay)  # decoupled: before the moments' step, and not in them
    change = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + SECTION["eps"])
    return value - rate * change, (mean, square)


def momentum(value, gradient, state, rate, decay, step):
    moment = 0.9 * (0 if state is None else state) + gradient + decay * value
    return value - rate * moment, moment


def nesterov(value, gradient, state, rate, decay, step):
    gradient = gradient + decay * value
    moment = 0.9 * (0 if state is None else state) + gradient
    return value - rate * (gradient + 0.9 * moment), moment


def lars(value, gradient, state, rate, decay, step):
    share, change = 1.0, gradient + decay * value
    if value.ndim > 1:
        of_value, of_gradient = np.linalg.norm(value), np.linalg.norm(gradient)
        share = 0.01 * of_value / (of_gradient + decay * of_value + 1e-5)
    moment = 0.9 * (0 if state is None else state) + share * change
    return value - rate * moment, moment


@pytest.mark.parametrize(
    ("name", "rule"), [("adamw", adamw), ("lars", lars), ("momentum", momentum), ("sgd", momentum), ("sgd", nesterov)]
)
def test_an_optimizer_is_that_of_numpy_and_leaves_the_bias_without_decay(mode, name, rule):
    cell, values = linear()
    section = {**SECTION, "opt": name, "nesterov": rule is nesterov}
    step = nn.TrainOneStepCell(cell, optimizers.build(section, cell.trainable_params(), RATES))
    states = [None, None]
    for number, (data, label) in enumerate(batches(), 1):
        step(*tensors(data, label))
        for index, gradient in enumerate(gradients(values, data, label)):
            rule_of = (values[index], gradient, states[index], RATES[number - 1], (0.1, 0.0)[index], number)
            values[index], states[index] = rule(*rule_of)
    np.testing.assert_allclose(cell.weight.asnumpy(), values[0], atol=2e-6)
    np.testing.assert_allclose(cell.bias.asnumpy(), values[1], atol=2e-6)


def sgd(cell, rate=0.1):
    return optimizers.build(
        {**SECTION, "opt": "sgd", "momentum": 0.0, "weight_decay": 0.0}, cell.trainable_params(), rate
    )


def test_all_gradients_together_are_cut_to_the_norm(mode):
    cell, values = linear()
    step = steps.Step(cell, sgd(cell), norm=0.5)
    data, label = batches()[0]
    wanted = gradients(values, data, label)
    norm = np.sqrt(sum((gradient**2).sum() for gradient in wanted))
    assert norm > 0.6
    step(*tensors(data, label))
    for parameter, value, gradient in zip((cell.weight, cell.bias), values, wanted):
        np.testing.assert_allclose(parameter.asnumpy(), value - 0.1 * gradient * 0.5 / norm, atol=1e-6)
    cell, values = linear()
    steps.Step(cell, sgd(cell), norm=10 * norm)(*tensors(data, label))  # a shorter one stays
    np.testing.assert_allclose(cell.bias.asnumpy(), values[1] - 0.1 * wanted[1], atol=1e-6)


def test_a_dynamic_loss_scale_halves_on_overflow_grows_after_good_steps_and_does_not_change_the_step(mode):
    cell, values = linear()
    step = steps.Step(cell, sgd(cell), scale=DYNAMIC)
    data, label = batches()[0]
    scales = []
    for number in range(6):
        if number == 3:  # its square is infinite in float32, and so are the gradients
            before = cell.weight.asnumpy().copy()
            _, finite, scale = step(*tensors(np.full((4, 2), 1e30), label))
            assert not finite.asnumpy() and (cell.weight.asnumpy() == before).all()
        else:
            _, finite, scale = step(*tensors(data, label))
            values = [v - 0.1 * g for v, g in zip(values, gradients(values, data, label))]
            assert finite.asnumpy()
        scales.append(float(scale.asnumpy()))
    assert scales == [1024, 2048, 2048, 1024, 1024, 2048]
    np.testing.assert_allclose(cell.weight.asnumpy(), values[0], atol=1e-6)
    saved = {parameter.name: float(parameter.asnumpy()) for parameter in step.loss_scale.get_parameters()}
    assert saved == {"loss_scale.value": 2048, "loss_scale.good_steps": 0}


def test_a_loss_scale_is_at_least_one_and_a_static_one_stays(mode):
    cell, _ = linear()
    step = steps.Step(cell, sgd(cell), scale={**DYNAMIC, "loss_scale": 1.5})
    overflow = tensors(np.full((4, 2), 1e30), np.zeros((4, 3)))
    assert [float(step(*overflow)[2].asnumpy()) for _ in range(2)] == [1, 1]
    cell, _ = linear()
    step = steps.Step(cell, sgd(cell), scale={**DYNAMIC, "type": "static"})
    assert float(step(*overflow)[2].asnumpy()) == 1024


def test_a_loss_scale_keeps_gradients_that_are_too_small_for_float16():
    """What it is for: 1e-8 is 0 in float16."""
    ms.set_device("CPU")

    class Tiny(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = ms.Parameter(ms.Tensor([1.0], ms.float32), name="weight")

        def construct(self, data, label):
            return (data.astype(ms.float16) * self.weight.astype(ms.float16)).astype(ms.float32).sum() * 1e-8

    found = []
    for scale in (None, {**DYNAMIC, "loss_scale": 65536}):
        cell = Tiny()
        steps.Step(cell, sgd(cell, 1e6), scale=scale)(*tensors([1.0], [0.0]))
        found.append(float(cell.weight.asnumpy()[0]))
    assert found[0] == 1 and found[1] == pytest.approx(1 - 0.01, rel=1e-2)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_mixed_precision_computes_in_float16_and_keeps_names_and_float32_weights(mode, level, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ms.set_seed(1)
    plain = models.build({"name": "lenet5"})
    names = [parameter.name for parameter in plain.get_parameters()]
    images = ms.Tensor(np.random.default_rng(1).random((4, 1, 32, 32)), ms.float32)
    wanted = plain(images).asnumpy()
    ms.set_seed(1)
    network = steps.lower_precision(models.build({"name": "lenet5"}), level)
    found = network(images).asnumpy()
    assert found.dtype == np.float32
    assert list(tmp_path.iterdir()) == []  # MindSpore's own O1 writes code into the current folder
    assert [parameter.name for parameter in network.get_parameters()] == names
    assert {str(parameter.dtype) for parameter in network.get_parameters()} == {"Float32"}
    rounded = bool((found == found.astype(np.float16)).all())
    assert rounded == (level != "O0")
    assert (found == wanted).all() == (level == "O0")
    np.testing.assert_allclose(found, wanted, atol=5e-3)


def test_a_batch_in_parts_is_the_batch_for_a_step_with_loss_scale_and_clipping():
    ms.set_device("CPU")
    found = []
    for parts in (1, 2):
        ms.set_seed(1)
        network, loss = models.build({"name": "lenet5"}), nn.CrossEntropyLoss()
        whole = nn.WithLossCell(network, loss) if parts == 1 else parallel.in_parts(network, loss, parts)
        step = steps.Step(whole, sgd(network), scale=DYNAMIC, norm=0.5)
        draw = np.random.default_rng(1)
        for _ in range(2):
            step(ms.Tensor(draw.random((4, 1, 32, 32)), ms.float32), ms.Tensor(draw.integers(0, 10, 4), ms.int32))
        found.append(network.fc3.weight.asnumpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def normalized():
    """A network with batch normalization, whose statistics a second forward run would change once more."""
    ms.set_seed(1)
    return nn.SequentialCell([nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 64, 10)])


@pytest.mark.parametrize("scaled", [False, True])
def test_a_step_in_two_parts_is_the_step(mode, scaled):
    """But for 1e-6: MindSpore tries out how many threads are best, and two runs add up in different orders."""
    found = []
    for in_two in (False, True):
        network = normalized()
        section = {**SECTION, "opt": "momentum"}
        optimizer = optimizers.build(section, network.trainable_params(), RATES)
        forward = nn.WithLossCell(network, nn.CrossEntropyLoss())
        if scaled:
            step = steps.Step(forward, optimizer, scale=DYNAMIC, norm=0.5)
            step = steps.InTwoParts(step.own, step.rest) if in_two else step
        elif in_two:
            step = steps.InTwoParts(steps.Gradients(forward, optimizer), steps.Update(optimizer, 1))
        else:
            step = nn.TrainOneStepCell(forward, optimizer)
        step.set_train()
        draw, losses = np.random.default_rng(1), []
        for _ in RATES:
            batch = ms.Tensor(draw.random((4, 1, 8, 8)), ms.float32), ms.Tensor(draw.integers(0, 10, 4), ms.int32)
            outputs = step(*batch)
            losses.append(float((outputs[0] if scaled else outputs).asnumpy()))
        found.append((losses, {parameter.name: parameter.asnumpy() for parameter in step.get_parameters()}))
    (losses, one), (losses_of_two, two) = found
    np.testing.assert_allclose(losses, losses_of_two, atol=1e-6)
    assert set(one) == set(two) and len(set(losses)) == len(RATES)
    for name, value in one.items():
        np.testing.assert_allclose(value, two[name], atol=1e-6, err_msg=name)
    assert np.abs(one["1.moving_mean"]).max() > 0
    if mode == 0:  # compiling takes as long as ten steps
        assert (len(step.own.compile_cache), len(step.rest.compile_cache)) == (1, 1)


def test_the_time_before_the_collective_is_taken_between_the_parts():
    ms.set_device("CPU")
    order = []

    class Own(nn.Cell):
        weights = (ms.Tensor(1.0),)

        def __call__(self, data, label):
            order.append("own")
            return data, (label,)

    class Rest(nn.Cell):
        def __call__(self, loss, *gradients):
            order.append("rest")
            return loss, gradients

    step = steps.InTwoParts(Own(), Rest(), clock=lambda: order.append("clock") or 5.0)
    data, label = tensors(1.0, 2.0)
    assert step(data, label) == (data, (label,))
    assert order == ["own", "clock", "rest"] and step.own_ended() == 5.0


def test_a_checkpoint_has_the_optimizer_and_the_loss_scale(tmp_path):
    ms.set_device("CPU")
    cell, _ = linear()
    step = steps.Step(
        cell, optimizers.build({**SECTION, "opt": "adamw"}, cell.trainable_params(), RATES), scale=DYNAMIC
    )
    for data, label in batches()[:3]:
        step(*tensors(data, label))
    ms.save_checkpoint(step, str(tmp_path / "x.ckpt"))
    cell, _ = linear()
    other = steps.Step(
        cell, optimizers.build({**SECTION, "opt": "adamw"}, cell.trainable_params(), RATES), scale=DYNAMIC
    )
    loading.load(str(tmp_path / "x.ckpt"), cell, other)
    after = [one(*tensors(*batches()[3])) for one in (step, other)]
    assert [[float(value.asnumpy()) for value in values] for values in after][0][2] == 4096
    assert [value.asnumpy() for value in after[0]] == [value.asnumpy() for value in after[1]]
    for one, two in zip(step.get_parameters(), other.get_parameters()):
        assert one.name == two.name and (one.asnumpy() == two.asnumpy()).all()
