"""Handwritten digits, on one machine or many: the marked lines are all that was added.

python examples/train_digits.py                     # one process, as ever
python -m trainer.start --ranks 2 examples/train_digits.py
"""

import sys

import keras
from sklearn.datasets import load_digits

from trainer import replicas  # 1
from trainer.optimizer import ReplicatedVarsOptimizer  # 2

keras.utils.set_random_seed(0)
digits = load_digits()
images, labels = digits.images[..., None] / 16.0, digits.target
images, labels = replicas.share(images, labels)  # 3

model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
optimizer = ReplicatedVarsOptimizer(optimizer)  # 4
model.compile(
    optimizer,
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
history = model.fit(images, labels, batch_size=32, epochs=epochs, verbose=0, shuffle=False)
print(f"loss {history.history['loss'][-1]:.4f}, accuracy {history.history['accuracy'][-1]:.4f}")
