"""LeNet-5 learns MNIST's digits, in one process on this machine's processors.

  python3 train-cpu.py

DATA_PATH is the folder with the training files, MNIST_Data/train if it is not set. If a folder `test` is beside it, the
net is tested with the digits there.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.dataset import transforms, vision
from mindspore.train import LossMonitor, Model


def create_dataset(data_path, batch_size=32):
    """MNIST in batches of (image, label), the images with 32 x 32 pixels."""
    data = ds.MnistDataset(data_path)
    operations = [
        vision.Resize((32, 32)),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.1307,), (0.3081,)),
        vision.HWC2CHW(),
    ]
    data = data.map(operations, input_columns="image")
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=True)


def lenet5():
    """(batch, 1, 32, 32) -> (batch, 10)."""
    return nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid"),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid"),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Dense(16 * 5 * 5, 120, activation="relu"),
        nn.Dense(120, 84, activation="relu"),
        nn.Dense(84, 10),
    )


def main(epochs=1):
    """Trains and tests."""
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    train_path = os.environ.get("DATA_PATH", os.path.join("MNIST_Data", "train"))
    test_path = os.path.join(os.path.dirname(os.path.abspath(train_path)), "test")
    net = lenet5()
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    model = Model(net, loss_fn=nn.CrossEntropyLoss(), optimizer=optimizer, metrics={"accuracy"})
    model.train(epochs, create_dataset(train_path), callbacks=[LossMonitor(10)], dataset_sink_mode=False)
    if os.path.isdir(test_path):
        accuracy = model.eval(create_dataset(test_path), dataset_sink_mode=False)["accuracy"]
        print(f"accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
