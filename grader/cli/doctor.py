"""`grader doctor`: says in plain words what this computer has and lacks for the course, and the repair for each lack."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from grader.cli.exits import NOT_GRADED, NOT_PASSED, PASSED, complain, say
from grader.course.course import open_course
from grader.course.course_folder import installed_folder
from grader.util.libraries import how_to_install, installed

IMPORT_TIMEOUT_S = 180  # the first import of torch on a cold disk takes long
# Run in a process of its own: a broken torch may take its process down with it.
_TORCH = """
import json, torch
right = torch.ones(2, 3).mm(torch.ones(3, 1)).tolist() == [[3.0], [3.0]]
cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps({"version": torch.__version__, "cuda": cuda, "mps": torch.backends.mps.is_available(),
                  "built_for_cuda": torch.version.cuda, "right": right}))
"""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. repair: '' where nothing is wrong; optional: the course runs without it."""

    subject: str
    finding: str
    repair: str = ""
    optional: bool = False

    @property
    def well(self) -> bool:
        return self.optional or not self.repair


def run(options: argparse.Namespace) -> int:
    from grader.notebook.workspace import folder

    if options.isolation:
        from grader.sandbox.isolation import SandboxError

        try:
            level, lacking = isolation()
            print(level)
            if lacking:
                say(f"{level}: {lacking}.")  # for people: a script reads only the level
        except SandboxError as error:
            return complain(f"nothing can be graded here: {error}.", NOT_GRADED)
        return PASSED
    checks = list(examine(folder(None)))
    print(render(checks))
    return PASSED if all(check.well for check in checks) else NOT_PASSED


def examine(folder: Path) -> Iterator[Check]:
    """Looks at what the course needs, the quickest first. folder: where notebooks will be written."""
    yield Check("Python", f"{sys.version.split()[0]} at {sys.executable}")
    yield from _packages()
    yield _kernel()
    yield from _torch() if installed("torch") else [_no_torch()]
    yield from _extras()
    yield _lessons()
    yield _isolation()
    yield _writable(folder)
    yield _machine()


def render(checks: list[Check]) -> str:
    """A line for each check, and below it the repair where one is needed."""
    lines = []
    for check in checks:
        mark = "ok     " if not check.repair else "note   " if check.optional else "missing"
        lines.append(f"{mark}  {check.subject}: {check.finding}")
        if check.repair:
            lines.append(f"         → {check.repair}")
    faults = sum(not check.well for check in checks)
    outcome = f"{faults} of these must be fixed before the course can run." if faults else "The course can run here."
    return "\n".join([*lines, "", outcome])


def _reinstall() -> str:
    """The repair where something is missing: of a checkout, or of what was handed out."""
    if _in_checkout():
        return "run `make lab` again, or: python -m pip install -e '.[lab,torch]' -c constraints.txt"
    return 'run the lines under "Set up" in the hand-out\'s README again, such as: python -m pip install -r requirements.txt'


def _requirements(*extras: str) -> list[str]:
    """The packages that the installed course asks for with these extras, torch aside; without any, those that it cannot do without."""
    from packaging.requirements import Requirement

    requirements = [Requirement(line) for line in requires("attention-course") or ()]
    environments = [{"extra": extra} for extra in extras or ("",)]
    return sorted(
        requirement.name
        for requirement in requirements
        if requirement.name not in ("torch", "attention-course")
        and (requirement.marker is None or any(map(requirement.marker.evaluate, environments)))
    )


def _in_checkout() -> bool:
    return (installed_folder() / "grader").is_dir()


def _packages() -> Iterator[Check]:
    core, packages = _requirements(), _requirements("", "lab")
    versions, lacking = {}, []
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            lacking.append(name)
    if versions:
        yield Check("packages", ", ".join(f"{name} {versions[name]}" for name in versions))
    if missing := [name for name in lacking if name in core or _in_checkout()]:
        yield Check("packages", f"not installed: {', '.join(missing)}", _reinstall())
    elif lacking:
        lab = "nothing, if something else opens the notebooks; otherwise: python -m pip install 'attention-course[lab]'"
        yield Check("JupyterLab", f"not installed here: {', '.join(lacking)}", lab, True)


def _kernel() -> Check:
    """Whether the kernel called python3 is this interpreter's, so that `import grader` works in notebooks."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        repair = _reinstall() if _in_checkout() or "jupyter-client" in _requirements() else ""
        return Check("kernel", "there is none, because jupyter_client is not installed", repair)
    install = "python -m ipykernel install --sys-prefix --name python3"
    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return Check("kernel", "there is none called python3", install)
    if command in ("python", "python3") or os.path.realpath(command) == os.path.realpath(sys.executable):
        return Check("kernel", "python3 runs this Python")
    return Check("kernel", f"python3 runs another Python, {command}", install)


def _no_torch() -> Check:
    """What it means that there is none: what is released of the NumPy lessons does without."""
    lessons = [name[:2] for name in open_course().lessons() if open_course().needs_torch(name)]
    if not lessons:
        return Check("torch", "not installed, and not needed for these lessons")
    required = _in_checkout() or "+" in version("attention-course")  # a hand-out
    repair = _reinstall() if required else "python -m pip install 'attention-course[torch]'"
    return Check("torch", f"not installed; lessons {', '.join(lessons)} need it", repair, not required)


def _torch() -> Iterator[Check]:
    try:
        child = subprocess.run([sys.executable, "-c", _TORCH], capture_output=True, text=True, timeout=IMPORT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        finding = f"is still importing after {IMPORT_TIMEOUT_S} s"
        yield Check("torch", finding, "try once more; if that does not help, reinstall torch")
        return
    try:
        facts = json.loads(child.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        reason = (child.stderr.strip().splitlines() or [f"its process ended with code {child.returncode}"])[-1]
        yield Check("torch", f"does not import: {reason[:200]}", "python -m pip install 'torch>=2.4'")
        return
    if facts["right"]:
        yield Check("torch", facts["version"])
    else:
        finding = f"{facts['version']}, but it multiplies matrices wrongly"
        yield Check("torch", finding, "python -m pip install --force-reinstall torch")
    if facts["cuda"]:
        yield Check("accelerator", f"{len(facts['cuda'])} with CUDA: {', '.join(facts['cuda'])}")
    elif facts["mps"]:
        yield Check("accelerator", "Apple's GPU, by MPS")
    elif facts["built_for_cuda"]:
        finding = f"none; this torch is built for CUDA {facts['built_for_cuda']}, but it finds no GPU"
        repair = "if this computer has one, check its driver with nvidia-smi; every lesson runs without it"
        yield Check("accelerator", finding, repair, True)
    else:
        yield Check("accelerator", "none; every lesson runs on the CPU")


def _extras() -> Iterator[Check]:
    """What exercises of single lessons cannot be judged without."""
    course = open_course()
    lessons: dict[str, list[str]] = {}
    for name in course.lessons() if course.judges else ():
        for module in {module for exercise in course.lesson(name).exercises for module in exercise.libraries}:
            lessons.setdefault(module, []).append(name[:2])
    for module, numbers in lessons.items():
        if installed(module):
            yield Check(module, version(module))
        else:
            finding = f"not installed; lesson{'s' * (len(numbers) > 1)} {', '.join(numbers)} cannot be checked"
            yield Check(module, finding, how_to_install(module), True)


def _lessons() -> Check:
    course = open_course()  # raises where there is nothing at all
    if not course.judges:
        return Check("course", "without solutions: nothing is judged on this computer")
    return Check("course", f"{course.edition()} with {len(course.exercise_names())} exercises")


def isolation() -> tuple[str, str]:
    """The level with which submissions would be graded here, 'full' or 'process', and what is lacking. Raises: SandboxError."""
    from grader.sandbox.isolation import remark
    from grader.sandbox.sandbox import Sandbox

    with Sandbox() as sandbox:
        return sandbox.verify(), remark(sandbox.lacking)


def _isolation() -> Check:
    try:
        from grader.sandbox.sandbox import SandboxError
    except ImportError as error:  # a browser's Python has nothing that starts and watches processes
        return Check("isolation", f"nothing can be graded here, only checked: {error}")
    try:
        level, lacking = isolation()
    except SandboxError as error:
        repair = "`check` works all the same; to grade, use another computer"
        return Check("isolation", f"nothing can be graded here: {error}", repair, True)
    if level == "full":
        return Check("isolation", "full: what is graded cannot read this computer's files")
    return Check(
        "isolation",
        f"{level}: what is graded can read this computer's files, because {lacking}",
        "your own work needs no more; `grader class` needs full, so grade a class on Linux 5.13 or newer",
        True,
    )


def _writable(folder: Path) -> Check:
    """Tries it: permissions alone don't tell of full disks and read-only mounts."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
            file.write(b"0" * 4096)
            file.flush()
    except OSError as error:
        repair = "copy the notebooks to a folder of your own and work there; check the free space of the disk"
        return Check("notebook folder", f"{folder.resolve()} can't be written to ({error.strerror})", repair)
    return Check("notebook folder", str(folder.resolve()))


def _machine() -> Check:
    try:
        import psutil

        memory = f", {psutil.virtual_memory().total / 2**30:.0f} GiB of memory"
    except ImportError:
        memory = ""
    return Check("computer", f"{os.cpu_count()} cores{memory}")
