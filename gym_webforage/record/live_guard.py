"""Which addresses a live recording may connect to.

A crawler runs inside someone's network, and a page can name any address. So only
public addresses are reached, unless the user allows more, and what counts is the
address that is connected to, not the name: a public name may lead to a private
address, and may do so only the second time it is asked.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Say whether an IP address can be reached from anywhere on the internet.

    >>> [is_public(a) for a in ("93.184.215.14", "10.0.0.1", "169.254.169.254")]
    [True, False, False]
    >>> [is_public(a) for a in ("::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1")]
    [False, False, False]
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if ip.teredo is not None:
            inner = ip.teredo[1]
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast


@dataclass
class Guard:
    """Decides on URLs before they are asked for, and on addresses as they resolve."""

    everything: bool = False
    hosts: frozenset[str] = frozenset()
    refused: set[str] = field(default_factory=set)  # names that led to such addresses

    @classmethod
    def of(cls, everything: bool, hosts: Iterable[str]) -> Guard:
        """Make one that allows ``everything`` or the private addresses of hosts."""
        return cls(everything, frozenset(bare(host) for host in hosts))

    def allows(self, host: str, address: str) -> bool:
        """Say whether ``address`` may be connected to for the sake of ``host``."""
        host = bare(host)
        if self.everything or host in self.hosts or is_public(address):
            return True
        self.refused.add(host)
        return False

    def objection(self, url: str) -> str:
        """Return what is wrong with a URL as it stands; nothing if nothing is."""
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
            _ = parts.port  # reading it checks it
        except ValueError as error:
            return f"refused: no valid URL ({error})"
        if parts.scheme not in ("http", "https"):
            return f"refused: {parts.scheme or 'no'} scheme, only http and https"
        if not host:
            return "refused: no host"
        try:
            allowed = self.allows(host, host)
        except ValueError:  # a name; its addresses are judged as they resolve
            return self.verdict(host)
        return "" if allowed else f"refused: {host} is a private address"

    def verdict(self, host: str) -> str:
        """Return why a name was refused when it resolved; nothing if it was not."""
        if bare(host) not in self.refused:
            return ""
        return f"refused: {host} leads to a private address"


def bare(host: str) -> str:
    """Return a host in the form in which hosts are compared."""
    return host.lower().strip("[]").rstrip(".")


def resolver_class(guard: Guard) -> type:
    """Make the class of a Twisted name resolver that hides what ``guard`` refuses.

    Every connection goes through it, those to written-out addresses included, and
    connects to nothing but what it hands out.
    """
    from scrapy.resolver import CachingHostnameResolver
    from twisted.internet.interfaces import IHostnameResolver, IResolutionReceiver
    from zope.interface import implementer

    @implementer(IResolutionReceiver)
    class Sieve:
        def __init__(self, receiver: Any, host: str) -> None:
            self.receiver, self.host = receiver, host

        def resolutionBegan(self, resolution: Any) -> None:
            self.receiver.resolutionBegan(resolution)

        def addressResolved(self, address: Any) -> None:
            if guard.allows(self.host, address.host):
                self.receiver.addressResolved(address)

        def resolutionComplete(self) -> None:
            self.receiver.resolutionComplete()

    @implementer(IHostnameResolver)
    class GuardedResolver(CachingHostnameResolver):
        def resolveHostName(
            self,
            resolutionReceiver: Any,
            hostName: str,
            portNumber: int = 0,
            addressTypes: Sequence[Any] | None = None,
            transportSemantics: str = "TCP",
        ) -> Any:
            return super().resolveHostName(
                Sieve(resolutionReceiver, hostName),  # type: ignore[arg-type]
                hostName,
                portNumber,
                addressTypes,
                transportSemantics,
            )

    return GuardedResolver
