"""A time-stamping authority on loopback: `openssl ts` behind a small web server."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CONFIG = """
[tsa]
default_tsa = here
[here]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
certs = {folder}/chain.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1
ess_cert_id_alg = sha256
"""

Certified = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


@dataclass(frozen=True)
class Authority:
    """The files of an authority, and how it signs."""

    folder: Path

    @property
    def roots(self) -> Path:
        """PEM file with its root certificate."""
        return self.folder / "roots.pem"

    def answer(self, query: bytes) -> bytes:
        """Return the answer to a query, as `openssl ts` gives it."""
        query_file, answer_file = self.folder / "query", self.folder / "answer"
        query_file.write_bytes(query)
        subprocess.run(
            ["openssl", "ts", "-reply", "-config", self.folder / "config", "-queryfile",
             query_file, "-out", answer_file],
            check=True, capture_output=True,
        )  # fmt: skip
        return answer_file.read_bytes()


def certificate(
    name: str, issuer: Certified | None = None, *, ca: bool = False, stamps: bool = False
) -> Certified:
    """Return a certificate and its key; without an issuer it is signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if stamps:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def make(folder: Path, *, root: Certified, chain: list[Certified]) -> Authority:
    """Write the files of an authority that signs with the last of `chain`."""
    folder.mkdir(parents=True, exist_ok=True)
    signer, key = chain[-1]
    pem = serialization.Encoding.PEM
    (folder / "roots.pem").write_bytes(root[0].public_bytes(pem))
    (folder / "chain.pem").write_bytes(
        b"".join(item.public_bytes(pem) for item, _ in chain[:-1] or chain)
    )
    (folder / "tsa.pem").write_bytes(signer.public_bytes(pem))
    (folder / "tsa.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "serial").write_text("01\n")
    (folder / "config").write_text(_CONFIG.format(folder=folder))
    return Authority(folder)


def usual(folder: Path) -> Authority:
    """Make an authority with a root, an intermediate and a certificate for timestamps."""
    # The client takes certificates in the order of DER, the shorter first, and openssl puts that of
    # the authority first: a long name makes the other one longer.
    root = certificate("Root of a long name, which is longer than the others are", ca=True)
    middle = certificate("Middle", root, ca=True)
    return make(folder, root=root, chain=[middle, certificate("TSA", middle, stamps=True)])


@contextmanager
def serving(
    answer: Callable[[bytes], bytes],
    *,
    status: int = 200,
    media: str = "application/timestamp-reply",
) -> Iterator[str]:
    """Yield the URL of a server that answers queries; it ends with the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            body = answer(query)
            self.send_response(status)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tsa?token=hunter2"
        server.shutdown()
        thread.join()
