"""What is said of the mistakes that only lesson 05 knows."""

from __future__ import annotations

from grader.model import MistakeText

TEXTS = (
    MistakeText(
        "NT1",
        "The weight was reshaped, not transposed: the shape fits, and the numbers sit in other places.",
        "`reshape` keeps the order of the numbers in memory and only cuts the rows elsewhere. A transpose "
        "puts the number of row i, column j into row j, column i. Both turn (2, 3) into (3, 2).",
        "weight = w.reshape(d_out, d_in)",
        "weight = w.T",
    ),
    MistakeText(
        "NT2",
        "The layer and the array share memory: a change of one changes the other.",
        "`torch.from_numpy`, `torch.as_tensor` and `torch.asarray` do not copy a float32 array; they look at "
        "its memory. The first step of an optimizer would then overwrite w.",
        "layer.weight = nn.Parameter(torch.from_numpy(w.T))",
        "layer.weight = nn.Parameter(torch.tensor(w.T))",
    ),
    MistakeText(
        "NT3",
        "The weight does not require grad, so no optimizer would change it.",
        "`nn.Parameter` requires grad unless `requires_grad=False` is passed or `requires_grad_(False)` is "
        "called. A frozen weight gets no gradient from `backward()`.",
        "nn.Parameter(weight, requires_grad=False)",
        "nn.Parameter(weight)",
    ),
    MistakeText(
        "NT4",
        "The weight kept NumPy's type; the layer is to be float32.",
        "NumPy makes float64 by default, torch float32. A float64 layer refuses a float32 input: 'mat1 and "
        "mat2 must have the same dtype'.",
        "torch.tensor(w.T)",
        "torch.tensor(w.T, dtype=torch.float32)",
    ),
    MistakeText(
        "NT5",
        "The layer still has its random initial weight: w never reached it.",
        "`nn.Linear(d_in, d_out)` draws its weight at random. The numbers of w must be copied into it.",
        "return nn.Linear(d_in, d_out, bias=False)",
        "layer.weight.copy_(torch.tensor(w.T))  # inside torch.no_grad()",
    ),
    MistakeText(
        "NT6",
        "The scale uses the width of the values; it needs d_k, the width of queries and keys.",
        "A score is a sum over the d_k products of one query and one key, so its spread grows with √d_k. The "
        "width of v plays no part in it.",
        "scores / math.sqrt(v.shape[-1])",
        "scores / math.sqrt(q.shape[-1])",
    ),
    MistakeText(
        "NT7",
        "The returned weights are cut from the graph; a loss on the weights would reach neither q nor k.",
        "The output carries its gradient, the weights beside it do not: they were detached before they were "
        "returned. Whoever only wants to plot them can detach them later.",
        "return output, weights.detach()",
        "return output, weights",
    ),
    MistakeText(
        "NT8",
        "Output and weights came back in the other order.",
        "The contract is (output, weights).",
        "return weights, output",
        "return output, weights",
    ),
    MistakeText(
        "NT9",
        "Something is turned into float32 on the way; the input's precision is to be kept.",
        "`.float()` means float32. On float64 inputs it throws digits away, and in a module that was moved by "
        "`.double()` float32 and float64 do not multiply.",
        "q = self.w_q(x.float())",
        "q = self.w_q(x)",
    ),
    MistakeText(
        "NT10",
        "NumPy cannot take a tensor that requires grad: detach it first.",
        "An array has no graph. Rather than cut it silently, torch raises 'Can't call numpy() on Tensor that "
        "requires grad'. Published walk-throughs of attention end on this line.",
        "return tensor.numpy()",
        "return tensor.detach().cpu().numpy()",
    ),
    MistakeText(
        "NT11",
        "bfloat16 has no NumPy type: convert it to float32 first.",
        "`.numpy()`, with `force=True` too, raises 'Got unsupported ScalarType BFloat16'. Every bfloat16 "
        "number is a float32 number as well, so `float()` loses nothing.",
        "return tensor.numpy(force=True)",
        "if tensor.dtype == torch.bfloat16:\n    tensor = tensor.float()",
    ),
    MistakeText(
        "NT12",
        "More than bfloat16 is converted to one float type; NumPy has the others, and their dtype is to be kept.",
        "float64 loses digits, integers stop being indices and a boolean mask stops being a mask. Convert "
        "where NumPy lacks the type, and nowhere else.",
        "return tensor.detach().cpu().float().numpy()",
        "if tensor.dtype == torch.bfloat16:\n    tensor = tensor.float()",
    ),
    MistakeText(
        "NT13",
        "The tensor stays on its device: NumPy reads the computer's own memory, so `cpu()` comes first.",
        "On a laptop without a GPU nothing shows this. On one with a GPU, `.numpy()` raises 'can't convert "
        "cuda:0 device type tensor to numpy'. `cpu()` costs nothing where the tensor is there already.",
        "return tensor.detach().numpy()",
        "return tensor.detach().cpu().numpy()",
    ),
    MistakeText(
        "NT14",
        "A tensor came back; a NumPy array was asked for.",
        "`detach()` and `cpu()` return tensors; `numpy()` makes the array.",
        "return tensor.detach().cpu()",
        "return tensor.detach().cpu().numpy()",
    ),
    MistakeText(
        "NT15",
        "The caller's own tensor was switched to requires_grad=False: it no longer trains.",
        "`requires_grad_(False)` and `detach_()` end in an underscore because they change the tensor itself. "
        "`detach()` returns another tensor and leaves the first alone.",
        "tensor.requires_grad_(False)",
        "tensor = tensor.detach()",
    ),
    MistakeText(
        "NT16",
        "The way through Python lists loses the dtype, and the shape of an empty tensor.",
        "A list of Python floats becomes a float64 array, and a (2, 0) tensor becomes `[[], []]` or less.",
        "return np.array(tensor.tolist())",
        "return tensor.detach().cpu().numpy()",
    ),
    MistakeText(
        "NT17",
        "Keys are made with w_q: queries and keys share one projection.",
        "With one projection the scores are symmetric, so what A asks of B is what B asks of A. The layer w_k "
        "gets no gradient.",
        "k = self.w_q(x)",
        "k = self.w_k(x)",
    ),
    MistakeText(
        "NT18",
        "The values are not projected: the output mixes x itself.",
        "Attention averages v = w_v(x). Without it the output keeps the width of x and w_v gets no gradient.",
        "output = weights @ x",
        "output = weights @ self.w_v(x)",
    ),
    MistakeText(
        "NT19",
        "`super().__init__()` is missing, or comes after the first layer.",
        "`nn.Module` keeps its parameters in a register that its constructor makes. Until then nothing can be "
        "entered there.",
        "def __init__(self, ...):\n    self.w_q = nn.Linear(...)",
        "def __init__(self, ...):\n    super().__init__()\n    self.w_q = nn.Linear(...)",
    ),
    MistakeText(
        "NT20",
        "The two sizes of the layers are exchanged: `nn.Linear(d_in, d_out)` takes the input's width first.",
        "The constructor reads (in, out); the weight that it stores has shape (out, in). x has width d_model.",
        "nn.Linear(d_k, d_model, bias=False)",
        "nn.Linear(d_model, d_k, bias=False)",
    ),
    MistakeText(
        "NT21",
        "w_v has the width of the keys; values may be of another width, d_v.",
        "Queries and keys meet in a dot product and share d_k. Values are only averaged, so their width is "
        "free.",
        "self.w_v = nn.Linear(d_model, d_k, bias=False)",
        "self.w_v = nn.Linear(d_model, d_v, bias=False)",
    ),
    MistakeText(
        "NT22",
        "The layers are made anew in forward: the module's own weights are never used.",
        "A layer made in `forward` has fresh random weights in every call and is forgotten afterwards. What "
        "is learned is made once, in `__init__`.",
        "q = nn.Linear(d_model, d_k, bias=False)(x)",
        "q = self.w_q(x)",
    ),
    MistakeText(
        "NT23",
        "Only one thing came back; the output and the weights were asked for.",
        "The contract is (output, weights): the weights are what the next lessons look at.",
        "return weights @ v",
        "return weights @ v, weights",
    ),
    MistakeText(
        "NT24",
        "The scale uses the number of keys; it needs d_k, the width of queries and keys.",
        "A score is a sum over the d_k products of one query and one key, however many keys there are. The width "
        "is the last entry of k's shape, the number of keys the one before it.",
        "scores / math.sqrt(k.shape[-2])",
        "scores / math.sqrt(k.shape[-1])",
    ),
    MistakeText(
        "NT25",
        "Something is turned into float64 on the way; the input's precision is to be kept.",
        "A float64 tensor with an axis of its own, such as `torch.tensor([8.0], dtype=torch.float64)`, makes float64 of "
        "all that it is divided into, and so does `.double()`. A Python number from `math.sqrt` takes the other side's type.",
        "scores / torch.tensor([d_k], dtype=torch.float64).sqrt()",
        "scores / math.sqrt(d_k)",
    ),
    MistakeText(
        "NT26",
        "The layer has a bias, and x @ w has none: pass `bias=False`.",
        "`nn.Linear` has a bias unless told otherwise. Drawn at random, it shifts every output by the same vector, and a "
        "zero input no longer gives zeros. Set to zero, it is still a parameter, which the first step of training moves.",
        "layer = nn.Linear(d_in, d_out)",
        "layer = nn.Linear(d_in, d_out, bias=False)",
    ),
    MistakeText(
        "NT27",
        "Each matrix of scores was normalised as a whole; each of its rows needs its own sum.",
        "A row is one query. Where all rows together sum to 1, a query's share depends on the other queries.",
        "scores.flatten(-2).softmax(-1).view_as(scores)",
        "scores.softmax(-1)",
    ),
    MistakeText(
        "NT28",
        "A layer's weight takes an `nn.Parameter` and nothing else: wrap the tensor, or copy the numbers into the weight.",
        "A module keeps account of what is learned, and a parameter's name is reserved for a parameter. Assigning a plain "
        "tensor or an array to it raises 'cannot assign … as parameter'.",
        "layer.weight = torch.tensor(w.T, dtype=torch.float32)",
        "layer.weight = nn.Parameter(torch.tensor(w.T, dtype=torch.float32))",
    ),
    MistakeText(
        "NT29",
        "The weight is overwritten while autograd watches: write into it inside `torch.no_grad()`.",
        "A parameter is a leaf of the graph that requires grad. A change in place would be a step of the computation, and "
        "a leaf has none before it, so torch refuses. Filling in a first value is no step of the computation.",
        "layer.weight.copy_(torch.tensor(w.T))",
        "with torch.no_grad():\n    layer.weight.copy_(torch.tensor(w.T))",
    ),
    MistakeText(
        "NT30",
        "Axes of k are exchanged that are counted from the front: exchange the last two, `k.transpose(-2, -1)` or `k.mT`.",
        "`transpose(1, 2)` is right for one leading axis alone, `transpose(0, 1)` for a single matrix. Counted from the "
        "end, the last two are tokens and width whatever stands before them.",
        "q @ k.transpose(1, 2)",
        "q @ k.transpose(-2, -1)",
    ),
)
