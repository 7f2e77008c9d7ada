"""Trains both students, over as many sittings as it takes. Started again, it goes on where it was ended.

    python -m venv VENV && VENV/bin/pip install -r student-requirements.txt
    python train_run.py WORK --data DIR --wordnet DIR --collections DIR --bge DIR --e5 DIR      # the first time
    python train_run.py WORK                                                                    # from then on

DIR are what student_texts.py and student_teachers.py are given. Two lanes of one thread each run at idle priority (SCHED_IDLE):

1. the texts, what the teachers say of them, then the student `head`: taught to do what the embedded model does, its learning rate
   searched, taught by the teachers;
2. as soon as the teachers have done the first pool of texts, the student `tiny`: its learning rate searched, then taught.

Each is a program of its own that keeps what it has done in WORK, so that this one has no state. `train_run.py WORK --report` says how
far everything is and how much processor time it has taken, and starts nothing.
"""

import argparse
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
FOLDERS = ("data", "wordnet", "collections", "bge", "e5")
# Steps of the whole training, the rates that a hundredth of it chooses from, and the share of the embedded model's postings.
STUDENTS = {
    "tiny": {"steps": 30_000, "rates": (3e-5, 1e-4, 3e-4), "aim": 0.97},
    "head": {"steps": 12_000, "rates": (1e-4, 4e-4, 1.6e-3), "aim": 1.8},
}
IMITATION = {"steps": 1_500, "rate": 2e-3}
TRIES = 5
PR_SET_PDEATHSIG = 1


def with_parent():
    """A program ends with the one that started it, even when that one is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(work, program, *arguments):
    """Runs a program to its end; what it prints is added to a log beside its results."""
    one = {name: "1" for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    for attempt in range(TRIES):
        with open(work / f"{program}.log", "a") as out:
            code = subprocess.run([sys.executable, TOOLS / f"{program}.py", work, *map(str, arguments)], stdout=out, stderr=out,
                                  env={**os.environ, **one}, preexec_fn=with_parent).returncode
        if code == 0:
            return
        print(f"{program} {arguments} ended with {code}", flush=True)
        time.sleep(30)
    raise RuntimeError(program)


def train(work, name, student, rate, steps, **options):
    if not (work / name / "finished.json").exists():
        flags = [part for option, value in options.items() for part in (f"--{option}", value)]
        start(work, "train_student", name, "--student", student, "--rate", rate, "--steps", steps, *flags)
    return json.loads((work / name / "finished.json").read_text())


def best_rate(work, student, **options):
    """The rate that comes nearest to the teachers in a hundredth of the steps, without many more postings than are aimed at."""
    plan, found = STUDENTS[student], {}
    for rate in plan["rates"]:
        found[rate] = train(work, f"search-{student}-{rate:g}", student, rate, plan["steps"] // 100, aim=plan["aim"], judge=0, **options)
    within = [rate for rate in found if found[rate]["held_out_ratios"][1] < plan["aim"] + 0.15] or list(found)
    return min(within, key=lambda rate: sum(found[rate]["held_out"].values()))


def teach(work, student, **options):
    plan = STUDENTS[student]
    train(work, student, student, best_rate(work, student, **options), plan["steps"], aim=plan["aim"], **options)


def first_lane(work, folders):
    if not (work / "texts.json").exists():
        # Its arguments are in another order, because it makes WORK.
        subprocess.run([sys.executable, TOOLS / "student_texts.py", folders["data"], folders["wordnet"], folders["collections"], work],
                       check=True, preexec_fn=with_parent)
    start(work, "student_teachers", "--bge", folders["bge"], "--e5", folders["e5"])
    train(work, "head-imitation", "head", IMITATION["rate"], IMITATION["steps"], task="imitate", pull=0)
    teach(work, "head", start=work / "head-imitation" / "checkpoint.npz")


def second_lane(work):
    while any(not list(work.glob(f"pool-{kind}-*[0-9].npz")) for kind in ("prose", "wordnet")):
        time.sleep(20)
    teach(work, "tiny")


def report(work):
    """How far each program is."""
    total = {"teachers": 0.0, "students": 0.0}
    for path in sorted(work.glob("*/log.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        total["students"] += lines[-1]["cpu_s"]
        print(f"{path.parent.name}: step {lines[-1]['step']}, {lines[-1]['cpu_s'] / 3600:.2f} hours of processor time, "
              f"{next((line['held_out'] for line in reversed(lines) if 'held_out' in line), None)}")
        for line in lines:
            if "dev" in line:
                print(f"    {line['step']}: {line['dev']}")
    if (work / "teachers.jsonl").exists():
        lines = [json.loads(line) for line in (work / "teachers.jsonl").read_text().splitlines()]
        total["teachers"] = sum(line["cpu_s"] for line in lines)
        print(f"teachers: {lines[-1]['what']}")
    print(", ".join(f"{name} {seconds / 3600:.2f} hours" for name, seconds in total.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--report", action="store_true")
    for name in FOLDERS:
        parser.add_argument(f"--{name}", type=Path)
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    if arguments.report:
        return report(work)
    work.mkdir(parents=True, exist_ok=True)
    stored = work / "folders.json"
    known = json.loads(stored.read_text()) if stored.exists() else {}
    folders = {**known, **{name: str(getattr(arguments, name).resolve()) for name in FOLDERS if getattr(arguments, name)}}
    if missing := [f"--{name}" for name in FOLDERS if name not in folders]:
        parser.error(f"{', '.join(missing)} wanted the first time")
    stored.write_text(json.dumps(folders))
    lock = open(work / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        parser.error("it is running already")
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    lanes = [threading.Thread(target=first_lane, args=(work, folders)), threading.Thread(target=second_lane, args=(work,), daemon=True)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()


if __name__ == "__main__":
    main()
