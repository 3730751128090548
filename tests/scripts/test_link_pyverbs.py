import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "link_pyverbs.py"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MODULES = ("device", "qp", "wr", "cq", "mr", "pd")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture
def site_packages(python):
    folder = next(python.parents[1].glob("lib/python*/site-packages"))
    yield folder
    (folder / "pyverbs").unlink(missing_ok=True)


def run(python, *words):
    command = [str(python), str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def package(folder, suffix=SUFFIX):
    """A stand-in of the distribution's package, whose modules load without libibverbs."""
    made = folder / "dist-packages" / "pyverbs"
    made.mkdir(parents=True)
    (made / "__init__.py").touch()
    (made / f"spec{suffix}").touch()
    for name in MODULES:
        (made / f"{name}.py").touch()
    (made.parent / "other.py").touch()
    return made


def test_only_pyverbs_becomes_visible_and_a_second_time_changes_nothing(
    python, site_packages, tmp_path
):
    made = package(tmp_path)
    done = run(python, made)
    assert (done.returncode, done.stderr) == (0, "")
    assert (site_packages / "pyverbs").resolve() == made
    check = [str(python), "-c", "import pyverbs.qp; import other"]
    loaded = subprocess.run(check, capture_output=True, text=True, check=False)
    assert "No module named 'other'" in loaded.stderr
    again = run(python, made)
    assert again.returncode == 0
    assert "already" in again.stdout


def test_a_link_to_another_place_is_set_anew(python, site_packages, tmp_path):
    (site_packages / "pyverbs").symlink_to(tmp_path / "gone")
    made = package(tmp_path)
    assert run(python, made).returncode == 0
    assert (site_packages / "pyverbs").resolve() == made


def test_another_pythons_modules_are_refused_with_both_named(python, site_packages, tmp_path):
    done = run(python, package(tmp_path, ".cpython-399-x86_64-linux-gnu.so"))
    assert done.returncode == 3
    assert "modules for cpython-399-x86_64-linux-gnu.so" in done.stderr
    assert SUFFIX in done.stderr
    assert not (site_packages / "pyverbs").exists()


def test_what_does_not_load_is_said_in_the_loaders_words(python, site_packages, tmp_path):
    made = package(tmp_path)
    (made / "qp.py").write_text("raise ImportError('libibverbs.so.1: cannot open')\n")
    done = run(python, made)
    assert done.returncode == 3
    assert "libibverbs.so.1: cannot open" in done.stderr
    assert "python3-pyverbs" in done.stderr


def test_an_installed_pyverbs_is_left_alone(python, site_packages, tmp_path):
    own = site_packages / "pyverbs"
    own.mkdir()
    try:
        done = run(python, package(tmp_path))
        assert done.returncode == 3
        assert "no link" in done.stderr
        assert own.is_dir()
    finally:
        own.rmdir()


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import link_pyverbs

    with pytest.raises(link_pyverbs.Refused, match="apt-get install .*python3-pyverbs"):
        link_pyverbs.find(["/nowhere/*"])


def test_it_serves_environments_only(python):
    base = subprocess.check_output(
        [str(python), "-c", "import sys; print(sys._base_executable)"], text=True
    ).strip()
    done = run(base)
    assert done.returncode == 2
    assert ".venv/bin/python" in done.stderr
