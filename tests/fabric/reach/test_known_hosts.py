"""Files of known host keys that are damaged are named with their line."""

import pytest

from fabric.errors import UnreachableError
from fabric.reach.access import Access
from fabric.reach.switchlogin import log_in


@pytest.mark.parametrize("key", ["AAAAB", "AAAAB3NzaC1yc2EAAAADAQABA=cut"])
def test_a_line_that_is_no_key_is_named_with_its_file_and_number(tmp_path, key):
    keys = tmp_path / "known_hosts"
    keys.write_text(f"# checked on Monday\n[127.0.0.1]:9 ssh-rsa {key}\n")
    access = Access("127.0.0.1", 9, "me", keys, password="x")
    with pytest.raises(UnreachableError, match="line 2: what stands there is no") as caught:
        log_in("leaf1", access, "cisco_nxos")
    assert str(keys) in str(caught.value)
    assert caught.value.device == "leaf1"
    assert "Take the line out" in caught.value.advice
