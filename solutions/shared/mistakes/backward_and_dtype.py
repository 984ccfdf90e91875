"""Gradients, precision, and what moves with a module."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "BW1",
        "The weighted mean is missing: subtract each row's weighted mean from grad_weights, then multiply by the weights.",
        "Each weight depends on every score of its row through the sum in the denominator; `weights * grad_weights` keeps only a score's "
        "effect on its own exponential. A test that shows it: adding one number to all scores of a row changes no weight, so each row "
        "of grad_scores must sum to 0.\n\n"
        "Take weights [0.5, 0.5] and grad_weights [1, 0]. The weighted mean is 0.5 · 1 + 0.5 · 0 = 0.5, so grad_scores is weights · "
        "(grad_weights − 0.5) = [0.25, −0.25]. Without the mean it is [0.5, 0].",
        "grad_scores = weights * grad_weights",
        "mean = (weights * grad_weights).sum(axis=-1, keepdims=True)\ngrad_scores = weights * (grad_weights - mean)",
    ),
    MistakeText(
        "BW2",
        "The factor 1/√d_k is missing from the gradient of q, of k or of both; both should carry it, as the scores do.",
        "The scores are q kᵀ / √d_k, one product with one factor, so the chain rule brings it along into both of its gradients. One without it "
        "is too large by exactly √d_k, and that of v is right. Directions agree, so a training run with the slip still moves downhill, "
        "at another learning rate.\n\n"
        "Take d_k = 4, keys [4, 0, 0, 0] and [0, 0, 0, 0], and grad_scores = [0.25, −0.25]. The first entry of q's gradient is "
        "0.25 · 4 / 2 = 0.5. Without the scale it is 1.",
        "grad_q = grad_scores @ k",
        "grad_q = grad_scores @ k / np.sqrt(k.shape[-1])",
    ),
    MistakeText(
        "BW3",
        "The graph was cut between queries and keys and the output: the output passes no gradient back to them through the scores.",
        "`detach()`, `.data`, `torch.no_grad()`, `torch.tensor(…)` and NumPy all cut the graph. After the cut the weights are constants. "
        "If the values were not cut off as well, the output still requires grad: `backward()` runs, and only what makes the values "
        "gets a gradient. In a model w_q and w_k then never train, while the loss falls a little through w_v. If they were, "
        "`backward()` raises an error.\n\n"
        "Take one query q = 0, keys 1 and 0, values 1 and 0. The output is the first weight, 0.5, and its derivative with respect to q "
        "is 0.5 · 0.5 = 0.25. After the cut q has no gradient at all.",
        "weights = torch.softmax(scores.detach(), dim=-1)",
        "weights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "DT1",
        "The fill lies outside the range of float16, which ends at ±65504; fill with −inf or `torch.finfo(dtype).min`.",
        "A fill of −1e9 is written for float32. PyTorch refuses to turn it into float16 and raises a RuntimeError ('value cannot be "
        "converted … without overflow'); other libraries silently make it −inf. bfloat16 has about the range of float32, so it does not "
        "show the slip.\n\n"
        "1e9 / 65504 is about 15266: the fill is that many times as low as the lowest float16. `torch.finfo(scores.dtype).min` is −65504 "
        "there and follows the type.",
        "scores = scores.half().masked_fill(~mask, -1e9)",
        "half = scores.half()\nscores = half.masked_fill(~mask, torch.finfo(half.dtype).min)",
        "NVIDIA/apex#1052",
    ),
    MistakeText(
        "DT2",
        "A float64 scalar turned the result into float64; use a Python float: `math.sqrt(d_k)`.",
        "`np.sqrt(8)` is a NumPy scalar of type float64. Since NumPy 2 its type counts as an array's does, so float32 divided by it is "
        "float64; a Python float adapts to the array. The numbers look the same, memory doubles, and the next step that expects float32 "
        "may refuse.\n\n"
        "One million scores take 4 million bytes in float32 and 8 million in float64.",
        "scores = scores32 / np.sqrt(8)",
        "scores = scores32 / math.sqrt(8)",
    ),
    MistakeText(
        "DT3",
        'The mask does not move with the module; register it as a buffer: `register_buffer("mask", mask, persistent=False)`.',
        "`.to(device)` moves parameters, buffers and submodules. A tensor in a plain attribute stays where it was made, and the first "
        "forward pass on a GPU fails: one operation meets tensors on two devices. On the CPU nothing shows it; moving the module to the "
        'device "meta" tests it anywhere.\n\n'
        'Take a module with one weight and one mask. After `.to("meta")` both should be on meta. With a plain attribute only the '
        "weight is; the mask is still on the CPU.",
        "self.mask = mask",
        'self.register_buffer("mask", mask, persistent=False)',
    ),
    MistakeText(
        "DT4",
        "A tensor that the code makes or moves lies on the CPU or the default device; it should lie where the inputs lie.",
        "`torch.arange`, `torch.ones`, `torch.eye` and the like make tensors on the default device unless they are told another. With "
        "inputs on a GPU the next operation then meets tensors on two devices and raises, or the result comes back on the CPU. On a "
        "laptop nothing shows it.\n\n"
        "Pass the inputs' own device, `device=x.device`, or make the tensor of one that is there already: `torch.zeros_like(x)`, "
        "`x.new_ones(3)`.",
        "positions = torch.arange(x.shape[1])",
        "positions = torch.arange(x.shape[1], device=x.device)",
    ),
    MistakeText(
        "DT5",
        "A tensor that the module keeps does not follow it to another device; register it as a buffer.",
        "`.to(device)` moves parameters, buffers and submodules. A tensor in a plain attribute stays where it was made, and the first call "
        "on a GPU meets tensors on two devices. On the CPU nothing shows it.\n\n"
        "`register_buffer` with `persistent=False` moves the tensor along and keeps it out of `state_dict`. A table that follows from the "
        "input may as well be computed at each call, on the input's device.",
        "self.table = table",
        'self.register_buffer("table", table, persistent=False)',
    ),
    MistakeText(
        "PO3",
        "An argument (base, eps, clip, bytes_per_number) has no effect: a number stands in its place, or it is left out.",
        "The number is the argument's default or a usual value, so that the slip shows only where somebody asks for another one: "
        "models for long texts raise the base of their frequencies, to 500000 for example, LayerNorm has an eps of 1e-5 in GPT-2 and "
        "of 1e-6 or 1e-12 elsewhere, and the same attention runs in numbers of 4 bytes, 2 or 1.\n\n"
        "Take position 1 and the exponent 1/2. With base 100 the angle is 0.1. With 10000 in the code it is 0.01, whatever base is.",
        "angle = position / 10000.0 ** (2 / 4)",
        "angle = position / base ** (2 / 4)",
    ),
)
