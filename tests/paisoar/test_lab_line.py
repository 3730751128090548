"""What a walk on virtual machines says when it is interrupted."""

import pytest

from fabric.lab import Sizes
from paisoar.console import Ui
from paisoar.labline import LabLine


@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupted_walk_says_that_kept_guests_stay(tmp_path, monkeypatch, keep):
    stopped = []
    monkeypatch.setattr("fabric.lab.down", stopped.append)

    def interrupt(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr(LabLine, "_lab_up", interrupt)
    file = tmp_path / "fabric.yaml"
    line = LabLine(
        Ui(as_json=True),
        file,
        lambda _text: None,
        hosts=2,
        sizes=Sizes(512, 256, 1),
        options=None,
        training=False,
        keep=keep,
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        line.walk()
    if keep:
        assert not stopped
        assert f"paisoar lab down -f {file}" in str(caught.value)
    else:
        assert stopped == [file]
        assert not str(caught.value)
