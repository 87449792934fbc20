"""The net of net.py learns MNIST's digits in one process, on this machine's processors.

  python3 train-cpu.py

DATA_PATH is the folder with the training files, ./MNIST_Data/train if it is not set. If there is a folder `test` beside
it, the net is tested with the digits in that.
"""

import os

import mindspore as ms
from mindspore import nn
from mindspore.train import LossMonitor, Model

from net import Net, create_dataset


def main(epochs=2):
    """Trains and tests."""
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    train_path = os.path.abspath(os.environ.get("DATA_PATH", "./MNIST_Data/train"))
    test_path = os.path.join(os.path.dirname(train_path), "test")
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01)
    model = Model(net, loss_fn=nn.CrossEntropyLoss(), optimizer=optimizer, metrics={"accuracy"})
    model.train(epochs, create_dataset(train_path), callbacks=[LossMonitor(10)], dataset_sink_mode=False)
    if os.path.isdir(test_path):
        result = model.eval(create_dataset(test_path), dataset_sink_mode=False)
        print(f"accuracy: {result['accuracy']:.4f}")


if __name__ == "__main__":
    main()
