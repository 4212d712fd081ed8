"""One move in which something dies, and what comes after: exactly one owner, no lost transfer."""

import itertools
import os
import random
import signal
import time

from sqlkit import report

from .scene import ROOT

STEPS = ("checked", "copying", "copied", "followed", "locked", "fencing", "fenced", "owned", "pointed front",
         "pointed front-2", "compared", "cleaned", "dropped")
_FEW = (("copied", "target"), ("fenced", "script"), ("fenced", "source"), ("owned", "front"))
_PARTIES = ("script", "source", "target", "front")
_HANGS = " that hangs"
# Of the script. A server that hangs is soon to be known as one; for others a slow machine has its time.
_PATIENCE = {True: ("--doubt-seconds", "5", "--answer-seconds", "3"), False: ("--doubt-seconds", "60", "--answer-seconds", "60")}
_REFUSED = 1


class _Case:
    """A move from where the partition is to the other shard."""

    def __init__(self, scene, party):
        self.hangs, party = party.endswith(_HANGS), party.removesuffix(_HANGS)
        self.scene, self.party = scene, party
        self.source, = scene.owners()
        self.target = "shard3" if self.source == "shard2" else "shard2"

    def dying(self):
        """The name of the server that dies; None when it is the script."""
        return {"source": self.source, "target": self.target}.get(self.party, self.party) if self.party != "script" else None

    def command(self):
        name = self.dying()
        if self.hangs:
            return f"kill -STOP {self.scene.server_of(name).pid()}"
        return "kill -9 $PPID" if name is None else f"{ROOT}/scripts/private-server.sh kill {self.scene.server_of(name).dir}"

    def after(self, end, status, text, output=None):
        """Starts what is dead and ends the move (`end` is --resume or --abort); its output goes to `output`. What is wrong."""
        scene, problems = self.scene, []
        if self.hangs:
            scene.server_of(self.dying()).kill()
        scene.load.stop()
        scene.revive()
        owners = scene.owners()
        if len(owners) > 1:
            problems.append(f"several owners: {owners}")
        problems += scene.resolve()
        if status == 0:
            expected = [self.target]
        else:
            # As clients do that come back at once.
            scene.load.start()
            time.sleep(0.1)
            expected, said = self._end(end, [] if output is None else output)
            problems += said
            time.sleep(0.1)
            scene.load.stop()
            problems += scene.resolve()
        self._drop_uncompared()
        if expected and scene.owners() != expected:
            problems.append(f"owners are {scene.owners()}, not {expected}")
        problems += scene.load.problems() + scene.left_over()
        return [text] + problems if problems else []

    def _end(self, end, output):
        """The owner expected, and what went wrong."""
        before = self.scene.owners()
        status, text = self.scene.move(self.source, self.target, end)
        if status == _REFUSED and "remembers no move" in text:
            return before, []
        if end == "--abort" and status == _REFUSED and "owns the table already" in text:
            end, (status, text) = "--resume", self.scene.move(self.source, self.target, "--resume")
        output.append(text)
        return [self.target if end == "--resume" else self.source], [] if status == 0 else [f"{end}: {text}"]

    def _drop_uncompared(self):
        """A move that was resumed after its switch leaves the old rows, and says so."""
        for member in self.scene.shards.values():
            member.run("DROP TABLE IF EXISTS d.money__moved")


def deaths(scene, checks, arguments):
    """A party dies at a step."""
    hanging = [(step, party + _HANGS) for step in ("locked", "fenced") for party in ("source", "target", "front")]
    cases = [*itertools.product(STEPS, _PARTIES), *hanging] if arguments.all else _FEW
    for number, (step, party) in enumerate(cases):
        for end in ("--resume", "--abort") if arguments.all else (("--resume", "--abort")[number % 2],):
            case = _Case(scene, party)
            scene.load.start()
            time.sleep(0.15)
            status, text = scene.move(case.source, case.target, *_PATIENCE[case.hangs], step=step, command=case.command())
            problems = [] if f"step {step}\n" in text else ["the step was not reached"]
            problems += case.after(end, status, text)
            if not checks.check(not problems, f"{party}{'' if case.hangs else ' killed'} at '{step}', then {end}: one owner, {scene.owners()[0]}; "
                                f"{len(scene.load.done)} transfers are there", problems):
                return


def chances(scene, checks, arguments):
    """One or two parties die at any time."""
    chosen = random.Random(arguments.seed)
    for number in range(1, arguments.rounds + 1):
        parties, end, moment = chosen.sample(_PARTIES, chosen.choice((1, 1, 2))), chosen.choice(("--resume", "--abort")), chosen.uniform(0.1, 1.2)
        cases = [_Case(scene, party) for party in parties]
        scene.load.start()
        time.sleep(0.1)
        process = scene.begin_move(cases[0].source, cases[0].target, "--doubt-seconds", "5")
        time.sleep(moment)
        for case in cases:
            name = case.dying()
            if name:
                os.kill(scene.server_of(name).pid(), signal.SIGKILL)
            else:
                process.kill()
        text = process.communicate()[0]
        steps = [line for line in text.splitlines() if line.startswith("step ")]
        problems = cases[0].after(end, process.returncode, text)
        if not checks.check(not problems, f"{number}: {' and '.join(parties)} killed after {moment:.2f} s (after {steps[-1] if steps else 'nothing'}), "
                            f"then {end}: one owner, {scene.owners()[0]}", problems):
            return


def renames(scene, checks, arguments):
    """A front dies while its tables change their names, which MariaDB does not survive every time: the script makes them anew."""
    chosen, mended = random.Random(arguments.seed), 0
    for number in range(1, arguments.rounds + 1):
        case = _Case(scene, "front")
        scene.load.start()
        time.sleep(0.1)
        moment = chosen.uniform(0.0, 0.05)
        status, text = scene.move(case.source, case.target, "--doubt-seconds", "5", step="owned",
                                  command=f"(sleep {moment:.4f}; kill -9 {scene.cluster.front.pid()}) > {os.devnull} 2>&1 &")
        said = []
        problems = case.after("--resume", status, text, said)
        mended += "made anew" in "".join(said)
        if not checks.check(not problems, f"{number}: a front killed {moment * 1000:.0f} ms after the target has the table", problems):
            return
    report.note(f"       its table was damaged in {mended} of {arguments.rounds} rounds")
