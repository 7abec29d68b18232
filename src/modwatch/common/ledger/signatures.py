"""Signatures of approvals and of results: Ed25519, by keys that people hold themselves.

What is signed is the text of the chain up to the step, so plan, sample, labels, result, names and
times with it. OpenSSL verifies it, too, with the public key in PEM:

    head -n 2 chain.jsonl > approved
    openssl pkeyutl -verify -rawin -in approved -sigfile chain-2.sig -pubin -inkey eve.pub
"""

import base64
import tomllib
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from modwatch.common.errors import AuditError
from modwatch.common.files import write_new
from modwatch.common.text import folded

#: Public keys by the folded name of the person.
Signers = Mapping[str, Ed25519PublicKey]


def make_key(path: Path, passphrase: str = "") -> str:
    """Write a new private key to a file that must not exist; return the public key as text.

    The file is in PEM (PKCS 8), encrypted if there is a passphrase, for its owner only. AuditError
    when it exists or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
    try:
        write_new(path, content)
    except OSError as exc:
        raise AuditError(f"no key can be written to {path} ({type(exc).__name__})") from None
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def read_key(path: Path, passphrase: str = "") -> Ed25519PrivateKey:
    """Return the private key in a file; AuditError for anything else, or a wrong passphrase."""
    try:
        key = serialization.load_pem_private_key(
            path.read_bytes(), passphrase.encode() if passphrase else None
        )
    except (OSError, ValueError, TypeError) as exc:
        raise AuditError(
            f"{path} cannot be read as a private key ({type(exc).__name__}); check the passphrase"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise AuditError(f"{path} is not a key of Ed25519; make one with `modwatch audit key`")
    return key


def read_signers(path: Path) -> Signers:
    """Return the public keys in a TOML file of lines `"name" = "key"`.

    AuditError when it cannot be read, a key is invalid, or two names are those of one person.
    """
    try:
        lines = tomllib.loads(path.read_text())
        keys = {
            folded(name): Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
            for name, key in lines.items()
        }
    except (OSError, ValueError, TypeError) as exc:
        raise AuditError(f"{path} is not a file of signers ({type(exc).__name__})") from None
    if len(keys) < len(lines):
        raise AuditError(f"{path}: two names differ in case or width only")
    return keys
