"""Variables and work of the models, as the predictor reads them."""

import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import InputError
from trainer.predict.layers import model_named, models
from trainer.spec import MODELS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "millions", "variables", "gmacs"),
    # Elements and tensors as published for these models; ResNet-50 here has its strides in
    # the 1x1 convolutions, which is 3.86 GMACs.
    [
        ("resnet50", 25.58, 214, 3.86),
        ("resnet152", 60.27, 622, 11.28),
        ("inception_v3", 23.82, 190, 5.71),
        ("vgg16", 138.36, 32, 15.47),
    ],
)
def test_models_have_their_published_sizes(name, millions, variables, gmacs):
    model = model_named(name)
    assert model.gradient_bytes / 4e6 == pytest.approx(millions, abs=0.006)
    assert len(model.variables) == variables
    assert model.macs / 1e9 == pytest.approx(gmacs, abs=0.006)


def test_every_model_of_the_trainer_can_be_predicted():
    assert set(MODELS) <= set(models())


@pytest.mark.parametrize("name", [*MODELS, "resnet101"])
def test_gradients_come_out_last_layers_first_and_all_by_the_end(name):
    model = model_named(name)
    assert list(model.ready) == sorted(model.ready, reverse=True)
    assert model.ready[0] == pytest.approx(1.0)
    assert list(model.begun) == sorted(model.begun)
    assert model.begun[0] == 0.0


def test_the_large_dense_layer_of_vgg16_is_out_early():
    model = model_named("vgg16")
    largest = max(range(32), key=lambda number: model.sizes[number])
    assert model.sizes[largest] > 400e6
    assert model.ready[largest] < 0.02


def test_an_unknown_model_is_named_with_those_that_there_are():
    with pytest.raises(InputError, match="lenet") as raised:
        model_named("lenet")
    assert "resnet50" in raised.value.advice


@pytest.mark.slow
def test_the_table_is_what_the_models_are(tmp_path):
    script = ROOT / "scripts" / "write_layers.py"
    written = tmp_path / "layers.csv"
    subprocess.run([sys.executable, str(script), str(written)], check=True, cwd=ROOT)
    table = ROOT / "trainer" / "predict" / "data" / "layers.csv"
    assert written.read_text() == table.read_text()
