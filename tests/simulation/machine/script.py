"""Steps of a plan that say themselves what is done, and where: a script is a list of these, one on a line.

A step of one word draws what it does; one with arguments is taken as it stands. Behind each everything comes to rest, but no time
passes; where `&` ends it, nothing moves before the next.

    publish a 3 size=60 priority=2      messages to a queue, or to all (`fan`); `silent`: nobody waits for a confirm; `transient`
    consume a 20                with so much prefetch
    ack 2 | reject 2 | requeue 2    so many deliveries of the first client, the oldest first; `newest`; `all`;
                                    `of=a`: of one queue; `from=3 step=2`: not the first three, and each second only
    get a                       and ack with it
    declare c version=1 letters levels=3 most=5 transient
    delete a | redeclare a      (in one read; with `both`, by two channels); these, and `declare`, `by=2`: by the second client
    purge a
    policy a mode=lazy version=2
    pass 0.5                    seconds
    busy b 3                    so many seconds in which the store is never idle: messages come that nobody waits for
    move 7                      so many turns of the loop or of a thread
    fail fdatasync log 2 times=1 errno=EIO keep=0    the second such call from now on; `keep=through`: it has done its work,
                                                     `keep=tail`: a sync has lost all but its last page
    misread shared 2            the second such read from now on gives a wrong bit; the disk has the right one
    cut fdatasync own 1         the machine goes off before the first such call; `behind`: behind it
    end power name:log=kept content:own=torn    how it goes off the next time, the power or `killed`; what is not named is lost
    off now                     here
    damage entry a 1 over=6     what the disk has of the second message is where that of the seventh is to be, too; `record`
    vhost w | unvhost w         a vhost is made, or deleted with all that is in it; its queues are called `w:c`
    flip   shared message=3     when it goes off the next time: a bit of a message, of which nothing is promised then
    flip   */0.g0.seg -20       or of an octet that no message needs, from the end where it is negative; `told`: a start says so;
                                `needless`: of a message that is elsewhere, too
    restart now | lose client   `restart failing`: what fails goes on failing while it stops, and while it starts
    resegment entry_count=8 segment_size=900    a clean stop, then `burrowmq-store resegment`, a cut behind it, and a start

Places are those of `tests.simulation.machine.places`. State: none; called by `tests.simulation.machine.run`.
"""

from __future__ import annotations

import errno
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, cast, get_args

from burrowmq.broker.definitions.parameters import set_policy
from burrowmq.broker.rules.policy import Policy
from burrowmq.management.commands.vhosts import add_vhost, delete_vhost
from tests.simulation.machine.clients import CONFIRMING, REST, TRANSACTING, SimClient
from tests.simulation.machine.damages import misplace
from tests.simulation.machine.model import Copy, Home, Publication, place_of
from tests.simulation.machine.places import CutAt, Ending, pattern_of
from tests.support.machine_disk import PlacedFault, PlacedMisread
from tests.support.sim_filesystem import TAIL, THROUGH, Fate

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run

NOW = "&"
BUSY_S = 0.05  # between two messages: a store is idle after 0.2 s
KEPT = {"through": THROUGH, "tail": TAIL}


class NoStep(Exception):
    """A script has a step that cannot be taken: it is wrong."""


class Words:
    """A step's words: those in a row, those with a name, and single ones."""

    def __init__(self, step: str) -> None:
        self.name, *rest = step.split()
        self.is_resting = NOW not in rest
        rest = [word for word in rest if word != NOW]
        self.named = dict(word.split("=", 1) for word in rest if "=" in word)
        self._row = [word for word in rest if "=" not in word]

    def at(self, number: int, default: str = "") -> str:
        """The word at this place."""
        return self._row[number] if number < len(self._row) else default

    @property
    def count(self) -> int:
        """The number among them; 1 if there is none."""
        return next((int(word) for word in self._row if word.isdigit()), 1)

    def named_number(self, name: str, default: int) -> int:
        """The number of this name."""
        return int(self.named.get(name, default))

    def has(self, word: str) -> bool:
        """Whether it is there."""
        return word in self._row


def take_scripted(run: Run, step: str) -> None:
    """Take one step. Raises what the machine does, and NoStep."""
    words = Words(step)
    words.is_resting = words.is_resting and words.name != "move"
    taken = STEPS.get(words.name)
    if taken is None:
        raise NoStep(step)
    taken(run, words)
    if words.is_resting:
        run.machine.settle()
        run.pump()


def _client(run: Run, name: str = "", number: int = 1) -> SimClient:
    """The first client of the vhost that a queue's name says, or the one of this number."""
    vhost, _ = place_of(name)
    found = [client for client in run.clients if client.vhost == vhost]
    while len(found) < number:
        found.append(run.client_of(vhost))
    return found[number - 1]


def _home(run: Run, words: Words) -> Home:
    home = run.model.current.get(words.at(0))
    if home is None:
        raise NoStep(f"{words.name}: there is no queue {words.at(0)}")
    return home


def publish(run: Run, words: Words) -> None:
    """Messages."""
    client, size = _client(run, words.at(0)), words.named_number("size", 60)
    for _ in range(words.count):
        run.number += 1
        body = (b"%08d" % run.number * (size // 8 + 1))[:size]
        priority = words.named_number("priority", 0)
        lasts = not words.has("transient")
        publication = Publication(run.number, body, lasts, client.number, priority, None)
        run.model.publications[run.number] = publication
        client.publish(publication, words.at(0), REST if words.has("silent") else CONFIRMING)


def consume(run: Run, words: Words) -> None:
    """A consumer."""
    _client(run, words.at(0)).consume(_home(run, words), words.count)


def settle(run: Run, words: Words) -> None:
    """Ack, reject or requeue."""
    client = _client(run, words.named.get("of", ""))
    keys = sorted(
        (key for key, its in client.deliveries.items() if _is_of(its, words)),
        reverse=words.has("newest"),
    )
    keys = keys[words.named_number("from", 0) :: words.named_number("step", 1)]
    for key in keys[: len(keys) if words.at(0) == "all" else words.count]:
        client.settle(key, words.name)


def _is_of(delivery: Copy, words: Words) -> bool:
    return words.named.get("of") in (None, delivery.home.name)


def get(run: Run, words: Words) -> None:
    """Fetch one message, acked by that."""
    _client(run, words.at(0)).get(_home(run, words), no_ack=True)


def declare(run: Run, words: Words, channel: int = REST) -> None:
    """A queue, durable and plain unless it is said what else."""
    client = _client(run, words.at(0), words.named_number("by", 1))
    client.send(client.declare(_new_home(run, words), channel))


def _new_home(run: Run, words: Words) -> Home:
    home = run.new_home(words.at(0))
    home.version = words.named_number("version", 2)
    home.has_dead_letters = words.has("letters")
    home.is_durable = not words.has("transient")
    home.levels = words.named_number("levels", 0) or None
    home.most = words.named_number("most", -1)
    home.most = None if home.most < 0 else home.most
    return home


def delete(run: Run, words: Words) -> None:
    """A queue less."""
    home = _home(run, words)
    run.end_of(home)
    client = _client(run, home.name, words.named_number("by", 1))
    client.send(client.delete(home))


def redeclare(run: Run, words: Words) -> None:
    """A queue less, and one of its name."""
    home, client = _home(run, words), _client(run, words.at(0), words.named_number("by", 1))
    run.end_of(home)
    home.is_replaced = True
    data = client.delete(home)
    channel = TRANSACTING if words.has("both") else REST
    client.send(data + client.declare(_new_home(run, words), channel))


def purge(run: Run, words: Words) -> None:
    """A queue is emptied."""
    _client(run, words.at(0)).purge(_home(run, words), is_got=False)


def policy(run: Run, words: Words) -> None:
    """A policy for one queue, or for all."""
    node = run.machine.node
    assert node is not None
    definition: dict[str, object] = {}
    if "version" in words.named:
        definition["queue-version"] = int(words.named["version"])
    if "mode" in words.named:
        definition["queue-mode"] = words.named["mode"]
    name = words.at(0)
    pattern = ".*" if name == "fan" else f"^{name}$"
    rule = Policy(name=name, pattern=pattern, definition=definition, apply_to="queues", priority=1)  # type: ignore[arg-type]
    set_policy(node.vhosts["/"], rule)
    node.scheduler.touch()


def let_pass(run: Run, words: Words) -> None:
    """Time passes; what was settled long before stays away."""
    seconds = float(words.at(0))
    run.machine.let_pass(seconds)
    if seconds >= 1 and not run.is_faulty:
        run.pump()
        run.model.all_safe(run.machine.faulty())


def busy(run: Run, words: Words) -> None:
    """Messages come all the time; what was settled before stays away by then: a busy store syncs its acks, too."""
    machine, client, name = run.machine, _client(run), words.at(0)
    settled, until = run.model.settled(), machine.threads.now_s + float(words.at(1))
    while machine.threads.now_s < until:
        run.pump()
        run.number += 1
        body = b"%08d" % run.number
        publication = Publication(run.number, body, True, client.number, 0, None)
        run.model.publications[run.number] = publication
        client.publish(publication, name, REST)
        machine.let_pass(BUSY_S)
    run.model.stay_away(settled, machine.faulty())


def move(run: Run, words: Words) -> None:
    """Something moves, and does not come to rest."""
    run.move(words.count)


def fail(run: Run, words: Words) -> None:
    """Calls at a place fail."""
    run.calls_fail()
    keep = words.named.get("keep", "0")
    run.machine.disk.placed.append(
        PlacedFault(
            words.at(0),
            pattern_of(words.at(1)),
            words.count,
            words.named_number("times", 1),
            getattr(errno, words.named.get("errno", "EIO")),
            KEPT.get(keep) or int(keep),
        )
    )


def misread(run: Run, words: Words) -> None:
    """A read goes wrong."""
    run.machine.disk.misreads.append(PlacedMisread(pattern_of(words.at(0)), words.count))


def heal(run: Run, _: Words) -> None:
    """Nothing fails any more."""
    run.heal()


def cut(run: Run, words: Words) -> None:
    """The machine goes off at a call that is to come."""
    pattern = pattern_of(words.at(1))
    run.machine.cuts.append(CutAt(words.at(0), pattern, words.count, words.has("behind")))


def end(run: Run, words: Words) -> None:
    """How it goes off."""
    run.machine.endings.append(_ending(words))


def _ending(words: Words) -> Ending:
    fates: list[tuple[str, str, Fate]] = []
    for about, fate in words.named.items():
        kind, _, place = about.partition(":")
        if kind not in ("name", "content") or fate not in get_args(Fate):
            raise NoStep(f"{words.name}: {about}={fate}")
        fates.append((kind, pattern_of(place), cast("Fate", fate)))
    return Ending(words.at(0) != "killed", fates)


def damage(run: Run, words: Words) -> None:
    """Something is in another's place."""
    home = run.model.current.get(words.at(1))
    if home is None:
        raise NoStep(f"damage: there is no queue {words.at(1)}")
    misplace(run, words.at(0), home, words.count, words.named_number("over", 0))


def off(run: Run, words: Words) -> None:
    """It goes off."""
    if words.at(0) != "now":
        run.machine.endings.append(_ending(words))
    elif not run.machine.endings:
        run.machine.endings.append(Ending(is_power=True))
    run.crash_now(is_power=True)


def vhost(run: Run, words: Words) -> None:
    """A vhost more."""
    node = run.machine.node
    assert node is not None
    add_vhost(node, words.at(0), "guest")


def unvhost(run: Run, words: Words) -> None:
    """A vhost less, and all that is in it."""
    node, model = run.machine.node, run.model
    assert node is not None
    homes = [home for home in model.current.values() if home.vhost == words.at(0)]
    for home in homes:
        run.end_of(home)
        home.is_deleting = True
    for _ in delete_vhost(node, words.at(0)):
        pass
    for client in [one for one in run.clients if one.vhost == words.at(0)]:
        run.lose(client)
    if words.is_resting:
        run.machine.settle()
        run.model.deleted(homes)


def flip(run: Run, words: Words) -> None:
    """A bit is another one when the machine is off."""
    run.damages.append(partial(_flip, words))


def _flip(words: Words, run: Run) -> None:
    disk, pattern = run.machine.disk, pattern_of(words.at(0))
    number = words.named_number("message", 0)
    piece = run.model.publications[number].body if number else b""
    for path in reversed(disk.paths()):
        content = disk.content(path)
        if fnmatchcase(path, pattern) and piece in content:
            break
    else:
        raise NoStep(f"flip: no file {words.at(0)} has that")
    at = content.index(piece) if number else int(words.at(1)) % len(content)
    disk.damage(path, at, bytes([content[at] ^ 1]))
    run.note(f"damage: {path} {at}")
    if number and not words.has("needless"):
        run.auditor.exempt({number}, ())
    run.untold = path if words.has("told") else run.untold


def restart(run: Run, words: Words) -> None:
    """A stop, clean where the disk is well, and a start."""
    if words.at(0) == "failing":
        is_power = run.stop(is_well=False)
        run.start()
        run.adopt(is_power=is_power)
    else:
        run.do("restart")


def resegment(run: Run, words: Words) -> None:
    """Between a clean stop and a start the store is written anew."""
    limits = run.machine.limits
    run.resegment(
        words.named_number("segment_size", limits.segment_size),
        words.named_number("entry_count", limits.entry_count),
    )


def lose(run: Run, _: Words) -> None:
    """The client's socket breaks."""
    for client in list(run.clients):
        run.lose(client)


STEPS = {
    "publish": publish,
    "consume": consume,
    "ack": settle,
    "reject": settle,
    "requeue": settle,
    "get": get,
    "declare": declare,
    "delete": delete,
    "redeclare": redeclare,
    "purge": purge,
    "policy": policy,
    "pass": let_pass,
    "busy": busy,
    "move": move,
    "fail": fail,
    "heal": heal,
    "misread": misread,
    "cut": cut,
    "flip": flip,
    "end": end,
    "damage": damage,
    "off": off,
    "vhost": vhost,
    "unvhost": unvhost,
    "restart": restart,
    "resegment": resegment,
    "lose": lose,
}
