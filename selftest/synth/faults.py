"""What befalls a synthesized group: deploys, restarts, kills and duplicates of its members."""

from selftest.synth.clients import Client
from selftest.synth.group import FORMATION_MS, Fault, Simulation


def befalls(simulation: Simulation) -> list[tuple[float, Fault]]:
    """Return the deploys and faults of a group, and when they are."""
    mix, dice = simulation.setting.mix, simulation.dice
    end_ms = min(simulation.setting.settled_ms, simulation.ended_ms)
    formed_ms = simulation.began_ms + FORMATION_MS + 4_000.0
    found: list[tuple[float, Fault]] = []
    if mix.deploy_every_ms is not None:
        at_ms = formed_ms + dice.uniform(0, mix.deploy_every_ms)
        while at_ms < end_ms:
            found.append((at_ms, deploy))
            at_ms += mix.deploy_every_ms * dice.uniform(0.8, 1.2)
    if mix.fault_every_ms is not None:
        at_ms = formed_ms - 2_500.0 + dice.expovariate(1 / mix.fault_every_ms)
        while at_ms < end_ms:
            found.append((at_ms, dice.choice((restart, restart, kill, duplicate))))
            at_ms += 400.0 + dice.expovariate(1 / mix.fault_every_ms)
    return found


def deploy(at_ms: float, simulation: Simulation) -> None:
    """Restart all members, one after the other."""
    for client in list(simulation.clients):
        simulation.push(at_ms, _restart_of, (simulation, client))
        at_ms += simulation.dice.uniform(9_000, 25_000)


def _restart_of(at_ms: float, what: tuple[Simulation, Client]) -> None:
    """Restart one member of a deploy."""
    simulation, client = what
    if client in simulation.clients:
        simulation.stop(at_ms, client)
        simulation.start(at_ms + simulation.dice.uniform(1_500, 6_000), client)


def restart(at_ms: float, simulation: Simulation) -> None:
    """Restart a member."""
    if simulation.clients:
        client = simulation.dice.choice(simulation.clients)
        simulation.stop(at_ms, client)
        simulation.start(at_ms + simulation.dice.uniform(200, 2_000), client)


def kill(at_ms: float, simulation: Simulation) -> None:
    """Kill a member, which is back after its session has ended."""
    if simulation.clients:
        client = simulation.dice.choice(simulation.clients)
        simulation.kill(at_ms, client)
        away_ms = simulation.setting.mix.session_ms * simulation.dice.uniform(1.2, 2.0)
        simulation.start(at_ms + away_ms, client)


def duplicate(at_ms: float, simulation: Simulation) -> None:
    """Start a second process with a member's instance id; a dynamic member restarts instead."""
    stable = [client for client in simulation.clients if client.state == "stable"]
    if not simulation.static or not stable:
        restart(at_ms, simulation)
        return
    simulation.start(at_ms, simulation.dice.choice(stable))
