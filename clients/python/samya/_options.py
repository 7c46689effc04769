"""The options of a client, checked and completed."""

from __future__ import annotations

import math
import random as random_numbers
import re
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Union
from urllib.parse import urlsplit

from ._call import Now

#: A bearer token, or a function that returns it.
Token = Union[str, Callable[[], str], None]

_MAX_TARGETS = 128

# How long a token of a file is used before the file is read again, in seconds.
_TOKEN_TIME = 10.0


@dataclass(frozen=True)
class Address:
    """A target, as it is dialled."""

    host: str
    port: int
    #: The context of TLS; None for connections that are not encrypted.
    tls: ssl.SSLContext | None

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Options:
    """The options of a client."""

    targets: Sequence[Address]
    token: Callable[[], str] | None
    timeout: float
    repeat_time: float
    try_time: float
    random: Callable[[], float]
    now: Callable[[], Now]


def system_now() -> Now:
    """The time of this machine."""
    return Now(time.monotonic(), time.time())


def complete(
    targets: Sequence[str],
    token: Token,
    tls: ssl.SSLContext | None,
    timeout: float,
    repeat_time: float,
    try_time: float,
    random: Callable[[], float] | None,
    now: Callable[[], Now] | None,
) -> Options:
    """Checks options and fills in the defaults. The ValueError names each option at fault."""
    faults = []
    if isinstance(targets, str):
        raise ValueError("options of a samya client: targets: want a list of addresses")
    if not 1 <= len(targets) <= _MAX_TARGETS:
        faults.append(f"targets: {len(targets)}, at least 1 and at most {_MAX_TARGETS}")
    addresses: list[Address] = []
    for t in targets:
        try:
            u = urlsplit(t)
            host, port = u.hostname or "", u.port or (443 if u.scheme == "https" else 80)
        except ValueError:
            u, host, port = urlsplit(""), "", 0
        if u.scheme not in ("http", "https") or not host or u.path not in ("", "/") or u.query or u.fragment:
            faults.append(f'targets: "{t}", want http://host:port or https://host:port')
            continue
        if any((a.host, a.port) == (host, port) for a in addresses):
            faults.append(f'targets: "{t}" is given twice')
        plain = u.scheme == "http"
        if token is not None and plain and not _loopback(host):
            faults.append(f'targets: "{t}": a token is not sent to another machine in clear')
        if tls is not None and plain:
            faults.append(f'targets: "{t}": tls is given, want https')
        addresses.append(Address(host, port, None if plain else tls or tls_context()))
    for name, v in (("timeout", timeout), ("repeat_time", repeat_time), ("try_time", try_time)):
        if not (v > 0 and math.isfinite(v)):
            faults.append(f"{name}: {v}, want a number of seconds above 0")
    if faults:
        raise ValueError("options of a samya client: " + "; ".join(faults))
    fixed = (lambda: token) if isinstance(token, str) else token
    return Options(
        addresses, fixed, timeout, repeat_time, try_time, random or random_numbers.random, now or system_now
    )


def tls_context(ca: str | None = None, cert: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """A context of TLS 1.3 from files in PEM.

    `ca` has the certificates of authorities that may sign for targets, by default those of the
    system. A client certificate and its key may replace the token.
    """
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


def token_file(path: str, now: Callable[[], Now] = system_now) -> Callable[[], str]:
    """Reads the token of a file, and again every ten seconds."""
    read, token = -math.inf, ""

    def current() -> str:
        nonlocal read, token
        at = now().mono
        if at - read >= _TOKEN_TIME:
            with open(path, encoding="utf-8") as f:
                token = f.read().strip()
            read = at
        return token

    return current


def _loopback(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host) is not None
