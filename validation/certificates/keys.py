"""Ed25519 keys: the one that signs here, and those that the gate trusts.

The site's own key is made on first use: ``.paisoar/keys/ed25519.pem`` (PKCS#8,
mode 0600), and its public half goes to ``.paisoar/keys/trusted/``. Whoever may
write to that folder decides what the gate believes. ``PAISOAR_SIGNING_KEY``
names another private key; its public half is trusted only when somebody puts
it there.
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.signer import CryptoSigner, SSlibKey

from fabric.errors import InputError
from fabric.site import Site
from validation.files import not_written, read_file, write_whole

KEY_VARIABLE = "PAISOAR_SIGNING_KEY"


def keys_dir(site: Site) -> Path:
    """Where the site keeps its keys."""
    return site.state_dir / "keys"


def trusted_dir(site: Site) -> Path:
    """Public keys that the gate believes: every ``*.pub.pem`` in it."""
    return keys_dir(site) / "trusted"


def signing_key_path(site: Site) -> Path:
    """The private key that signs for this site."""
    named = os.environ.get(KEY_VARIABLE)
    return Path(named).expanduser() if named else keys_dir(site) / "ed25519.pem"


def signer(site: Site) -> CryptoSigner:
    """The site's signer; its own key is made where there is none yet.

    Raises InputError where the key cannot be read, is no Ed25519 key, or is open
    to other users.
    """
    path = signing_key_path(site)
    if not path.exists():
        if os.environ.get(KEY_VARIABLE):
            raise InputError("the signing key does not exist", file=path, key=KEY_VARIABLE)
        _create(site, path)
    try:
        mode = path.stat().st_mode
        data = read_file(path)
    except OSError as error:
        raise InputError(f"the signing key cannot be read: {error}", file=path) from error
    try:
        private = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(
            f"is no unencrypted private key in PEM form: {error}", file=path
        ) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise InputError("is no Ed25519 key", file=path)
    # Only now: what is no key at all must not be advised to be closed.
    if mode & 0o077:
        raise InputError(
            f"the signing key is open to other users (mode {mode & 0o777:04o})",
            file=path,
            advice=f"Close it with: chmod 600 {path}",
        )
    return CryptoSigner(private)


def trusted_keys(site: Site) -> tuple[SSlibKey, ...]:
    """Keys that the gate believes; empty where there is none. InputError on a bad file."""
    keys = []
    for path in sorted(trusted_dir(site).glob("*.pub.pem")):
        try:
            public = load_pem_public_key(read_file(path))
        except (OSError, ValueError, UnsupportedAlgorithm) as error:
            raise InputError(
                f"is no public key in PEM form: {error}",
                file=path,
                advice="Mend it, or take it out of the folder of trusted keys.",
            ) from error
        if not isinstance(public, Ed25519PublicKey):
            raise InputError("is no Ed25519 key", file=path)
        keys.append(SSlibKey.from_crypto(public))
    return tuple(keys)


def is_trusted(site: Site, signing: CryptoSigner) -> bool:
    """Whether this site's gate believes this signer."""
    return any(key.keyid == signing.public_key.keyid for key in trusted_keys(site))


def _create(site: Site, path: Path) -> None:
    made = CryptoSigner.generate_ed25519()
    private = load_pem_private_key(made.private_bytes, password=None)
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    name = f"ed25519-{made.public_key.keyid[:12]}.pub.pem"
    # The public half first: a private key that is seen is trusted.
    write_whole(trusted_dir(site) / name, public)
    # Created closed: at no moment may another user read it.
    partial = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_whole(partial, made.private_bytes, 0o600)
    try:
        keys_dir(site).chmod(0o700)
        # Unlike a renaming, never puts one key in the place of another.
        os.link(partial, path)
    except FileExistsError:
        pass
    except OSError as error:
        raise not_written(path, error) from error
    finally:
        partial.unlink()
