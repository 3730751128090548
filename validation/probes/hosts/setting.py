"""What stays the same from step to step: the site, what its hosts have, what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabric.site import Site
from fabric.topology import PortRef
from validation.probes.hosts import tcp
from validation.probes.hosts.ends import own_tos
from validation.probes.hosts.facts import HostFacts
from validation.probes.hosts.gids import Gid
from validation.probes.hosts.instrument import Instrument
from validation.probes.hosts.options import Options
from validation.probes.hosts.pairs import RunningPair
from validation.probes.hosts.pairtest import End

# Two seconds: a processor that is busy with much else answers late, and has lost nothing.
SOFTWARE_ACK_TIMEOUT = 19


@dataclass(frozen=True)
class Setting:
    """Site, hosts and choices of one probe."""

    site: Site
    facts: Mapping[str, HostFacts]
    options: Options
    instrument: Instrument

    def problem(self, port: PortRef) -> str:
        """Why this port cannot take part in a test; empty where it can."""
        facts = self.facts[port.device]
        return facts.problem or facts.ports[port.port].problem

    def gid(self, port: PortRef) -> Gid:
        """The GID of a port without a problem."""
        gid = self.facts[port.device].ports[port.port].gid
        assert gid is not None
        return gid

    def rdma(self, port: PortRef) -> str:
        """The port's verbs device."""
        return self.site.host(port.device).nics[port.port].rdma

    def words(self, pair: RunningPair, folder: str, *, server: bool) -> tuple[str, ...]:
        """The command of one end of a pair; the client's report in JSON goes to ``folder``."""
        here = pair.test.target if server else pair.test.source
        peer = "" if server else self.gid(pair.test.target).address
        if pair.program:
            return self._tcp_words(pair, peer)
        with_json = not server and self.facts[here.device].json
        return self.instrument.words(
            pair.test,
            self._end(here),
            self.options,
            mtu=self.site.intent.mtu.roce,
            port=pair.port,
            folder=folder,
            peer=peer,
            json_file=f"{folder}/{pair.client}.json" if with_json else "",
        )

    def _end(self, port: PortRef) -> End:
        software = self.facts[port.device].ports[port.port].software
        return End(
            self.rdma(port),
            str(self.gid(port).index),
            own_tos(self.site, port, self.options),
            SOFTWARE_ACK_TIMEOUT if software else None,
        )

    def _tcp_words(self, pair: RunningPair, peer: str) -> tuple[str, ...]:
        test, tos = pair.test, tcp.default_tos(self.site)
        if test.stream.kind == "ping":
            if not peer:
                return tcp.answer_words(pair.port, test.stream)
            return tcp.ping_words(test.stream, peer, pair.port, test.iterations or 0, tos)
        if not peer:
            return tcp.server_words(pair.program, pair.port)
        return tcp.client_words(
            pair.program,
            test.stream,
            peer,
            pair.port,
            test.seconds or self.options.seconds,
            tos,
        )
