"""Tell whether only this machine can reach an address."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address; one that cannot be read is not such."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
