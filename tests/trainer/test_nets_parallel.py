"""The networks that show a parallel mode, alone on this machine's processors, against NumPy."""

import pytest
from suite.needs import Later, needs_packages

ms, nn, np = Later("mindspore"), Later("mindspore.nn"), Later("numpy")
parallel = Later("tools.trainer.models.parallel")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough, pytest.mark.trains]

NETS = {
    "whole": lambda: parallel.WholeNet(),
    "hybrid": lambda: parallel.HybridParallelNet(),
    "semi_auto": lambda: parallel.SemiAutoParallelNet(ranks=4),
    "pipeline": lambda: parallel.PipelineNet(stages=2),
}


def batch():
    draw = np.random.default_rng(7)
    return draw.random((8, 1, 32, 32), np.float32), draw.integers(0, 10, 8).astype(np.int32)


def by_numpy(images, labels):
    """(logits, loss, {name: gradient}) of the net, by hand: softmax cross entropy, mean over the batch."""
    weights = parallel.dense_weights(10, parallel.modes.HIDDEN_SIZE, 42)
    inputs = [images.reshape(len(images), -1)]
    for number in (1, 2, 3):
        x = inputs[-1] @ weights[f"fc{number}.weight"] + weights[f"fc{number}.bias"]
        inputs.append(np.maximum(x, 0) if number < 3 else x)
    logits = inputs[-1]
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    likely = shifted / shifted.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(likely[rows, labels]).mean()
    likely[rows, labels] -= 1
    gradient, found = likely / len(labels), {}
    for number in (3, 2, 1):
        found[f"fc{number}.weight"] = inputs[number - 1].T @ gradient
        found[f"fc{number}.bias"] = gradient.sum(0)
        gradient = (gradient @ weights[f"fc{number}.weight"].T) * (inputs[number - 1] > 0)
    return logits, loss, found


@pytest.fixture(autouse=True)
def on_cpu():
    ms.set_device("CPU")
    ms.set_context(mode=ms.GRAPH_MODE)


@pytest.mark.parametrize("name", NETS)
def test_logits_and_gradients_are_numpys(name):
    images, labels = batch()
    logits, loss, gradients = by_numpy(images, labels)
    net = NETS[name]()
    np.testing.assert_allclose(net(ms.Tensor(images)).asnumpy(), logits, atol=2e-5)
    step = ms.value_and_grad(nn.WithLossCell(net, nn.CrossEntropyLoss()), None, net.trainable_params())
    value, found = step(ms.Tensor(images), ms.Tensor(labels))
    assert abs(float(value) - loss) < 1e-5
    for parameter, gradient in zip(net.trainable_params(), found):
        np.testing.assert_allclose(gradient.asnumpy(), gradients[parameter.name], atol=2e-6, err_msg=parameter.name)


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_batch_in_parts_has_the_batchs_loss_and_gradients(pipeline):
    images, labels = batch()
    _, loss, gradients = by_numpy(images, labels)
    net = parallel.PipelineNet()
    cell = parallel.in_parts(net, nn.CrossEntropyLoss(), 4, pipeline)
    value, found = ms.value_and_grad(cell, None, net.trainable_params())(ms.Tensor(images), ms.Tensor(labels))
    assert abs(float(value) - loss) < 1e-5
    for parameter, gradient in zip(net.trainable_params(), found):
        np.testing.assert_allclose(gradient.asnumpy(), gradients[parameter.name], atol=2e-6, err_msg=parameter.name)


def test_the_stages_by_hand_are_the_net_when_put_together():
    images, labels = batch()
    logits, loss, _ = by_numpy(images, labels)
    net = parallel.WholeNet()
    hidden = parallel.FirstStage(net)(ms.Tensor(images))
    assert abs(float(parallel.LastStage(net, nn.CrossEntropyLoss())(hidden, ms.Tensor(labels))) - loss) < 1e-5


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_what_the_ranks_hold_is_the_whole_once(ranks):
    whole = parallel.dense_weights(10, 128, 42)
    parts = [parallel.HybridParallelNet(rank=rank, ranks=ranks) for rank in range(ranks)]
    for name, (shape, axis) in parts[0].cuts.items():
        held = [part.parameters_dict()[name].asnumpy() for part in parts]
        assert whole[name].shape == shape
        for part in parts:
            assert part.parameters_dict()[name].layerwise_parallel is (axis is not None)
        merged = held[0] if axis is None else np.concatenate(held, axis)
        np.testing.assert_array_equal(merged, whole[name])


def test_layers_are_dealt_out_to_stages_in_order():
    for stages, dealt in ((2, [0, 0, 1]), (3, [0, 1, 2])):
        net = parallel.PipelineNet(stages=stages)
        assert [layer.pipeline_stage for layer in (net.fc1, net.fc2, net.fc3)] == dealt


def test_shard_strategies_are_set_and_cut_as_the_net_cut_by_hand_is():
    net = parallel.SemiAutoParallelNet(ranks=4)
    assert net.fc1.matmul.attrs["in_strategy"] == ((1, 1), (1, 4))
    assert net.fc2.matmul.attrs["in_strategy"] == ((1, 4), (4, 1))
