"""Networks, losses and metrics: their shapes, and their results, compared with NumPy."""

import pytest
from suite.needs import Later, needs_packages

from hccl_tools.check import schema_check
from tools.config import combinations, modes

ms, np = Later("mindspore"), Later("numpy")
losses, metrics = Later("tools.trainer.losses"), Later("tools.trainer.metrics")
models, parallel = Later("tools.trainer.models"), Later("tools.trainer.models.parallel")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough, pytest.mark.trains]

SCHEMA = schema_check.load_schema("train_config")


@pytest.fixture(autouse=True, scope="module")
def cpu():
    """These are small enough to be run one operator after the other."""
    ms.set_device("CPU")
    ms.set_context(mode=ms.PYNATIVE_MODE)


def tensor(values, dtype="float32"):
    return ms.Tensor(np.asarray(values, dtype))


def test_names_in_the_schema_are_those_that_there_are():
    assert sorted([*models.MODELS, *modes.NETS]) == sorted(SCHEMA["$defs"]["model"]["properties"]["name"]["enum"])
    assert sorted(losses.LOSSES) == sorted(SCHEMA["$defs"]["loss"]["properties"]["name"]["enum"])
    assert set(combinations.NETWORKS) == {*models.MODELS, *modes.NETS}
    assert set(metrics.METRICS) == set(losses.LOSSES)
    assert parallel  # it has the networks of parallel.NETS


@pytest.mark.parametrize(
    ("section", "shape", "expected"),
    [
        ({"name": "lenet5", "num_classes": 7}, (3, 1, 32, 32), (3, 7)),
        ({"name": "dense", "image_size": 20}, (3, 1, 20, 20), (3, 10)),
        ({"name": "resnet50", "num_classes": 7}, (2, 3, 32, 32), (2, 7)),
        ({"name": "crnn", "num_classes": 5, "hidden_size": 8}, (2, 1, 32, 64), (2, 16, 5)),
        ({"name": "dbnet", "channels": 4, "k": 10}, (2, 3, 32, 32), (2, 3, 32, 32)),
    ],
)
def test_every_key_of_a_network_counts(section, shape, expected):
    output = models.build(section)(tensor(np.random.RandomState(1).rand(*shape)))
    assert output.shape == expected


def test_resnet_50_has_as_many_weights_as_the_paper_says():
    network = models.build({"name": "resnet50", "num_classes": 1000})
    assert sum(parameter.size for parameter in network.trainable_params()) == 25_557_032


def test_the_layers_of_resnet_50_are_dealt_out_to_pipeline_stages_in_order():
    network = models.build({"name": "resnet50"})
    network.set_pipeline_stages(2)
    stages = [cell.pipeline_stage for cell in (network.stem, *network.stages, network.classify)]
    assert stages == [0] * 9 + [1] * 9


def test_columns_of_crnn_are_probabilities():
    output = models.build({"name": "crnn", "num_classes": 5})(tensor(np.zeros((1, 1, 32, 32)))).asnumpy()
    assert np.exp(output).sum(-1) == pytest.approx(1, abs=1e-5)


def test_softmax_cross_entropy_expanded_is_cross_entropy_with_its_gradient():
    random = np.random.RandomState(1)
    logits, labels = tensor(random.normal(0, 30, (6, 10))), tensor(random.randint(0, 10, 6), np.int32)
    expanded, fused = losses.SoftmaxCrossEntropyExpand(), ms.nn.CrossEntropyLoss()
    assert float(expanded(logits, labels).asnumpy()) == pytest.approx(float(fused(logits, labels).asnumpy()), rel=1e-6)
    gradients = [ms.grad(loss)(logits, labels).asnumpy() for loss in (expanded, fused)]
    assert gradients[0] == pytest.approx(gradients[1], abs=1e-6)


def test_large_logits_make_no_infinite_loss():
    loss = losses.SoftmaxCrossEntropyExpand()(tensor([[1000.0, 0.0]]), tensor([1], np.int32))
    assert float(loss.asnumpy()) == 1000


def test_ctc_loss_is_the_probability_of_all_ways_to_write_the_text():
    # two columns, text "1": the ways are 1-, -1 and 11
    probabilities = np.array([[[0.6, 0.4], [0.3, 0.7]]])
    loss = losses.CTCLoss()(tensor(np.log(probabilities)), tensor([[1, 0, 0]], np.int32))
    ways = 0.4 * 0.3 + 0.6 * 0.7 + 0.4 * 0.7
    assert float(loss.asnumpy()) == pytest.approx(-np.log(ways), rel=1e-5)


def test_db_loss_is_least_where_maps_and_label_are_one_and_does_not_see_what_is_masked():
    label = np.zeros((1, 5, 8, 8), np.float32)
    label[:, 0, 2:5, 2:5] = 1
    label[:, 1] = label[:, 3] = 1
    label[:, 2] = 0.5
    right = np.stack([label[:, 0], label[:, 2], label[:, 0]], 1)
    loss = losses.build({"name": "DBLoss", "l1_scale": 10})
    assert float(loss(tensor(right), tensor(label)).asnumpy()) == pytest.approx(0, abs=1e-4)
    wrong = right.copy()
    wrong[:, :, 7, 7] = 1 - wrong[:, :, 7, 7]
    assert float(loss(tensor(wrong), tensor(label)).asnumpy()) > 0.1
    label[:, [1, 3], 7, 7] = 0
    assert float(loss(tensor(wrong), tensor(label)).asnumpy()) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("abc", "", 3), ("abc", "abc", 0), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_edit_distance(one, other, edits):
    assert metrics.edit_distance(one, other) == edits


def test_character_accuracy_merges_repeats_leaves_blanks_out_and_counts_edits():
    # columns: 1 1 blank 1 2 -> text 1 1 2; wanted 1 1 3: one edit of three
    columns = [1, 1, 0, 1, 2]
    output = np.log(np.eye(4)[columns] + 1e-3)[None]
    metric = metrics.CharacterAccuracy()
    metric.update(tensor(output), tensor([[1, 1, 3, 0]], np.int32))
    assert metric.eval() == pytest.approx(2 / 3)
    metric.update(tensor(output), tensor([[1, 1, 2, 0]], np.int32))
    assert metric.eval() == pytest.approx(5 / 6)


def test_hmean_finds_the_boxes_again_that_the_labels_were_drawn_from():
    from tools.trainer.datasets import text_boxes

    boxes = [(10, 10, 60, 30, True), (8, 40, 100, 56, True), (10, 80, 50, 100, False)]
    label = text_boxes.maps(boxes, 128)
    perfect = np.stack([label[0], label[2], label[0]])
    metric = metrics.Hmean()
    metric.update(tensor(perfect[None]), tensor(label[None]))
    assert metric.eval() == 1
    perfect[0, :35, 20] = 0  # the first box in two, one of them too small to count
    perfect[0, 84:96, 15:45] = 1  # found where the text is unreadable: neither right nor wrong
    metric.clear()
    metric.update(tensor(perfect[None]), tensor(label[None]))
    assert (metric.matched, metric.found, metric.wanted) == (2, 3, 2)
    assert metric.eval() == pytest.approx(2 * 2 / (3 + 2))


def test_growing_undoes_shrinking():
    from tools.trainer.datasets import text_boxes

    reach = text_boxes.shrink_by(60, 20)
    assert metrics.grow_by(60 - 2 * reach, 20 - 2 * reach) == pytest.approx(reach)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [((0, 0, 2, 2), (0, 0, 2, 2), 1), ((0, 0, 2, 2), (1, 0, 3, 2), 1 / 3), ((0, 0, 2, 2), (2, 0, 4, 2), 0)],
)
def test_iou(one, other, overlap):
    assert metrics.iou(one, other) == pytest.approx(overlap)


def test_a_box_is_matched_once():
    assert metrics.matches([(0, 0, 2, 2), (0, 0, 2, 2)], [(0, 0, 2, 2)], 0.5) == 1
