"""Our plugins and playbooks as Ansible itself sees them."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
PLUGINS = sorted(path.stem for path in (PLAYBOOKS / "plugins" / "action").glob("paisoar_*.py"))


@pytest.mark.parametrize("name", PLUGINS)
def test_each_plugin_documents_exactly_the_options_that_it_takes(name):
    module = importlib.import_module(f"playbooks.plugins.action.{name}")
    documented = YAML(typ="safe").load(module.DOCUMENTATION)
    assert documented["action"] == name
    assert set(documented["options"]) == module.ActionModule._VALID_ARGS
    assert YAML(typ="safe").load(module.RETURN)
    tasks = YAML(typ="safe").load(module.EXAMPLES)
    for task in tasks:
        assert set(task[name]) <= module.ActionModule._VALID_ARGS
        required = {k for k, o in documented["options"].items() if o.get("required")}
        assert required <= set(task[name])


@pytest.mark.parametrize("playbook", sorted(path.name for path in PLAYBOOKS.glob("*.yml")))
def test_each_playbook_is_accepted_by_ansible(playbook):
    checked = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            "--syntax-check",
            "-i",
            "localhost,",
            PLAYBOOKS / playbook,
        ],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg")},
    )
    assert checked.returncode == 0, checked.stderr
