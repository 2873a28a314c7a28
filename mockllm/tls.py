"""TLS for the listener: from files, or with a certificate made for the occasion."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from pathlib import Path

from mockllm.errors import ConfigError


def context_from_files(certfile: str, keyfile: str | None) -> ssl.SSLContext:
    """A server's context.

    Args:
        certfile: Certificate chain, PEM; with the key in it where `keyfile` is None.
        keyfile: Private key, PEM.

    Raises:
        ConfigError: A file is missing or is not what it should be.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certfile, keyfile)
    except (OSError, ssl.SSLError) as error:
        name, value = ("ssl_keyfile", keyfile) if keyfile and Path(certfile).is_file() else ("ssl_certfile", certfile)
        why = "its content will not do" if isinstance(error, ssl.SSLError) else error.strerror or error
        raise ConfigError(name, value, f"a readable PEM file whose key and certificate match ({why})") from None
    return context


def context_from_pem(pem: bytes) -> ssl.SSLContext:
    """A server's context out of a key and its certificate."""
    with tempfile.NamedTemporaryFile("wb", suffix=".pem") as file:  # ssl reads chains from files only
        file.write(pem)
        file.flush()
        return context_from_files(file.name, None)


def self_signed(host: str) -> bytes:
    """A new key and a certificate for `localhost`, the loopback addresses and `host`, as PEM.

    Raises:
        ConfigError: The extra `tls` is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise ConfigError(
            "self_signed_certs",
            True,
            "only once `pip install cryptography` has run; or give ssl_certfile and ssl_keyfile",
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mockllm")])
    addresses = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), *map(x509.IPAddress, addresses)]
    try:
        address = ipaddress.ip_address(host)
        if address not in addresses:
            names.append(x509.IPAddress(address))
    except ValueError:
        if host != "localhost":
            names.append(x509.DNSName(host))
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private
