"""The device to work on, asked of a torch that pretends to have this or that GPU."""

from grader.course.declare import Case, exercise, mistake, patch

CUDA = "if torch.cuda.is_available():\n        return torch.device('cuda')"
MPS = "if torch.backends.mps.is_available():\n        return torch.device('mps')"


@exercise(points=1, minutes=4, difficulty=1, result_type="any", result_names=("device type",), forbids=("tampering",))
class pick_device:
    """Choose the device to work on: CUDA, else Apple's GPU, else the CPU."""

    def cases(rng):
        for key, title, cuda, mps, gpus in (
            ("nothing", "a laptop without either", "no build", "no build", 0),
            ("cuda", "a machine with one CUDA GPU", "here", "no build", 1),
            ("mps", "a machine with Apple's GPU", "no build", "here", 0),
            ("both", "both at once", "here", "here", 1),
            ("no driver", "a CUDA build of torch, but no GPU", "build", "no build", 0),
            ("old mac", "torch built for Apple's GPU, which is not available", "no build", "build", 0),
            ("eight", "a machine with eight CUDA GPUs", "here", "no build", 8),
            ("both again", "both at once, two CUDA GPUs", "here", "here", 2),
            ("both, many", "both at once, eight CUDA GPUs", "here", "here", 8),
            ("mps, CUDA build", "Apple's GPU and a CUDA build without a GPU", "build", "here", 0),
            ("neither", "built for both, neither available", "build", "build", 0),
            ("cuda, Apple build", "a CUDA GPU; torch built for Apple's, too", "here", "build", 2),
            ("seen-again", "Apple's GPU once more", "no build", "here", 0),
            ("old mac again", "built for Apple's GPU, not available, once more", "no build", "build", 0),
        ):
            yield Case(key, title, probe="probes.pick", options={"cuda": cuda, "mps": mps, "gpus": gpus})
        neither = {"cuda": "no build", "mps": "no build", "gpus": 0, "other": True}
        yield Case("another", "an accelerator of another kind", probe="probes.pick", options=neither)

    hints = (
        "Which three names can the device's type have, and which question decides each?",
        "`torch.cuda.is_available()` and `torch.backends.mps.is_available()` say what can be used; "
        "`is_built()` says what torch was compiled for.",
        'if torch.cuda.____():\n    return torch.device("cuda")\nif torch.backends.mps.____():\n    return ____\nreturn ____',
    )

    mistakes = {
        "GP3": mistake(
            patch("torch.cuda.is_available", "torch.backends.cuda.is_built"),
            patch("mps.is_available", "mps.is_built"),
            says="A GPU was chosen because torch was built for it; ask whether it is available.",
            why="""A CUDA build of torch runs on machines without a GPU, and every build for macOS knows mps, also on a Mac or a
            macOS that cannot use it. The first tensor sent to the device then raises.""",
        ),
        "GP5": mistake(
            patch("torch.cuda.is_available()", "torch.cuda.is_available"),
            patch("mps.is_available()", "mps.is_available"),
            says="A GPU was chosen without asking whether it is available, at the time when the function is called.",
            why="""`torch.device("cuda")` is only a name and never fails. The first tensor that is sent there does. A function that
            is not called counts as true: the parentheses of `is_available()` ask the question.""",
        ),
        "GP6": mistake(
            patch(*(text for name in ("cuda", "mps", "cpu") for text in (f"torch.device('{name}')", f"'{name}'"))),
            says="A string came back; a `torch.device` is expected.",
            why="Most functions accept both, but only a `torch.device` has a `.type` and an `.index`.",
        ),
        "GP9": mistake(
            patch(CUDA, ""),
            patch(CUDA, MPS, MPS, CUDA),
            patch(MPS, ""),
            patch(CUDA, "", MPS, ""),
            says="""A GPU is available, but another device was chosen; ask `torch.cuda.is_available()` first, then for mps, and take the
            cpu only where both say no.""",
            why="""Nothing asks for it, something else is asked than whether it is available, or a later line takes the choice back.
            The order of the questions is the order of preference, and the first that is available wins. Of two `if` one after the
            other, the second decides again; `elif` goes on from the first. torch calls Apple's GPU mps, and answers for it in
            `torch.backends.mps`.""",
        ),
    }
