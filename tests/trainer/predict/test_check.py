"""Published figures, what was fitted on some of them, and the rest."""

from dataclasses import fields

import pytest

from trainer.collective.settings import NetworkSettings
from trainer.predict.check import TESTED_MEDIAN, TESTED_WORST, check, fitted_keys, summary
from trainer.predict.constants import CHOICES, DEFAULTS, FITTED, ORIGINS, Constants
from trainer.predict.fit import GROUPS, fit
from trainer.predict.frames import article_frames, check_frame
from trainer.predict.gpus import GPUS, compute
from trainer.predict.published import figures


@pytest.fixture(scope="module")
def rows():
    return check()


def test_every_published_figure_is_predicted_once(rows):
    keys = [row.figure.key for row in rows]
    assert len(keys) == len(set(keys)) == len(figures())
    counts = {
        name: sum(key.startswith(name) for key in keys)
        for name in (
            "horovod-16/",
            "horovod-64/",
            "horovod-128/",
            "horovod-512/",
            "dgx1-8/",
            "ec2-64/",
            "byteps/",
            "article/",
        )
    }
    assert counts == {
        "horovod-16/": 15,
        "horovod-64/": 3,
        "horovod-128/": 3,
        "horovod-512/": 3,
        "dgx1-8/": 5,
        "ec2-64/": 3,
        "byteps/": 4,
        "article/": 13,
    }


def test_the_articles_numbers_are_its_own(rows):
    published = {row.figure.key: row.figure.published for row in rows}
    assert published["article/rdma-ps-over-grpc-ps/resnet50"] == 1.4483
    assert published["article/ring-over-grpc-ps/inception_v3"] == 1.8477
    assert published["article/ring-over-horovod/inception_v3"] == 0.936
    assert published["article/greennet/128"] == 101.0


def test_a_figure_is_fitted_on_or_tests_and_says_which(rows):
    fitted = {row.figure.key for row in rows if row.side == "fitted"}
    assert fitted == fitted_keys()
    on = {key for name in FITTED for key in ORIGINS[name].fitted_on}
    assert fitted == on | {key for keys in CHOICES.values() for key in keys}
    assert len(rows) - len(fitted) > 2 * len(fitted)


def test_nothing_is_fitted_on_models_that_are_kept_for_the_test(rows):
    for row in rows:
        if row.side == "fitted":
            assert row.figure.key.endswith(("inception_v3", "vgg16"))


def test_there_are_fewer_fitted_constants_than_figures_that_they_are_fitted_on():
    assert len(FITTED) < len({key for name in FITTED for key in ORIGINS[name].fitted_on}) + 1


def test_every_constant_says_where_it_is_from():
    assert set(ORIGINS) == {field.name for field in fields(Constants)}
    known = {figure.key for figure in figures()}
    for origin in ORIGINS.values():
        assert bool(origin.source) != bool(origin.fitted_on)
        assert set(origin.fitted_on) <= known


def test_a_lost_last_packet_costs_the_trainers_own_timeout():
    timeout = NetworkSettings().timeout
    assert pytest.approx(4.096e-6 * 2**timeout, rel=0.01) == DEFAULTS.rto_s


def test_errors_are_what_predictions_and_the_documentation_say(rows):
    fitted, tested = summary(rows, "fitted"), summary(rows, "tested")
    assert tested.median == pytest.approx(TESTED_MEDIAN, abs=0.003)
    assert tested.worst == pytest.approx(TESTED_WORST, abs=0.005)
    assert fitted.median < 0.03
    assert fitted.worst < 0.28


def test_errors_are_relative_to_what_was_published(rows):
    for row in rows:
        assert row.error == pytest.approx(row.predicted / row.figure.published - 1)
    frame = check_frame(rows)
    assert set(frame["evidence"]) == {"predicted"}
    assert frame["error"].abs().max() == max(
        summary(rows, "fitted").worst, summary(rows, "tested").worst
    )


@pytest.mark.slow
def test_the_constants_are_what_the_fit_gives():
    found = fit()
    for group in GROUPS:
        for name in group:
            # Where two constants stand for each other, the valley is shallow.
            assert getattr(found, name) == pytest.approx(getattr(DEFAULTS, name), rel=0.05)


def test_the_figures_of_the_article_come_as_frames():
    frames = article_frames()
    assert set(frames) == {"speedup", "images", "ratios"}
    speedup, images = frames["speedup"], frames["images"]
    assert list(speedup["gpus"]) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert set(images["model"]) == {"inception_v3", "resnet50", "resnet152", "vgg16"}
    assert set(images["mode"]) == {"ps-grpc", "ps-rdma", "ring", "horovod"}
    assert len(frames["ratios"]) == 13
    for frame in frames.values():
        assert set(frame["evidence"]) == {"predicted"}
    at_64 = images[images["gpus"] == 64].set_index(["model", "mode"])["images_per_s"]
    for model in set(images["model"]):
        assert at_64[model, "ring"] > at_64[model, "ps-rdma"] > at_64[model, "ps-grpc"]


def test_a_step_is_a_line_through_what_a_table_has():
    assert 64 / compute("p100", "resnet50", 64).step_s == pytest.approx(219.0)
    assert 32 / compute("p100", "resnet50", 32).step_s == pytest.approx(195.0)
    assert 219.0 < 128 / compute("p100", "resnet50", 128).step_s < 260.0


def test_what_is_in_no_table_is_derived_and_says_so():
    known = compute("v100", "vgg16", 64)
    assert known.source.startswith("derived")
    assert 1.6 < compute("p100", "vgg16", 64).step_s / known.step_s < 1.9
    assert compute("p100", "greennet", 64).source.startswith("derived")
    for gpu in GPUS.values():
        assert gpu.source
