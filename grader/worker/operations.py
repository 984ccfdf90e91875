"""Which ready-made operations are looked for, by name, and what is nobody's answer: libraries, and where their code lies.

The names are public: a worker may know what is forbidden. How they are seen to run is in watch.py.
"""

from __future__ import annotations

import math
import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ATTENTION = frozenset(
    """
    scaled_dot_product_attention multi_head_attention_forward _native_multi_head_attention _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_attention_math_for_mps _transformer_encoder_layer_fwd _triton_scaled_dot_attention
    _triton_multi_head_attention _flash_attention_forward _efficient_attention_forward flex_attention varlen_attn
    _scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_fused_attention_overrideable_backward _flash_attention_backward _efficient_attention_backward
    _safe_softmax
    """.split()  # the last is attention's own: all that is seen of an operator that was traced, and whose parts run one by one
)
LAYERS_RUN = frozenset(
    "multi_head_attention_forward _native_multi_head_attention _transformer_encoder_layer_fwd".split()
)
SOFTMAX = frozenset(
    """
    softmax log_softmax softmin gumbel_softmax special_softmax special_log_softmax _softmax _log_softmax _safe_softmax _masked_softmax
    """.split()
)
LOSSES = frozenset(
    """
    logsumexp logsumexp_out special_logsumexp _logsumexp reduce_logsumexp logaddexp logaddexp2 logcumsumexp _logcumsumexp
    cumlogsumexp cumulative_logsumexp cross_entropy cross_entropy_loss nll_loss nll_loss_nd nll_loss_forward nll_loss2d
    nll_loss2d_forward log_loss sparse_categorical_crossentropy sparse_softmax_cross_entropy_with_logits
    softmax_cross_entropy_with_integer_labels
    """.split()
)
NORMALIZATION = frozenset(
    """
    layer_norm native_layer_norm _fused_layer_norm rms_norm _fused_rms_norm batch_norm native_batch_norm _native_batch_norm_legit
    _native_batch_norm_legit_no_training _batch_norm_impl_index _batch_norm_with_update cudnn_batch_norm group_norm
    native_group_norm instance_norm normalize local_response_norm zscore
    """.split()
)
RECURRENT = frozenset(
    """
    rnn_tanh rnn_relu gru lstm rnn_tanh_cell rnn_relu_cell gru_cell lstm_cell _cudnn_rnn miopen_rnn mkldnn_rnn_layer _lstm_mps
    _thnn_fused_gru_cell _thnn_fused_lstm_cell
    """.split()
)
AUTOGRAD = frozenset({"run_backward", "_make_dual"})  # what all of torch's ways back and forward derivatives come to
OUT_OF_TORCH = frozenset("numpy __array__ __dlpack__ from_numpy frombuffer".split())  # where no tensor's size is seen
# 'torch' stands for any call into a library that differentiates by itself; one note says that it happened.
GROUPS = {
    "attention": ATTENTION,
    "layers": LAYERS_RUN,
    "softmax": SOFTMAX,
    "cross_entropy": LOSSES,
    "normalization": NORMALIZATION,
    "einsum": frozenset({"einsum"}),
    "torch": frozenset({"torch"}),
    "recurrent": RECURRENT,
    "autograd": AUTOGRAD,
    "table": OUT_OF_TORCH,
}
SIZED = frozenset({"table"})  # the groups with which sizes are looked at, too
MAX_CALLS = 20_000  # that are sent of one case; of more, each name once
OPERATIONS = "operations"  # before their number, among the calls: how many of torch's ran, where sizes are looked at
# Operations of torch's that contain no other: an operator that is looked for cannot hide in them, unless it is one of them.
ELEMENTARY = frozenset(
    """
    add sub rsub mul div true_divide floor_divide remainder neg pow square sqrt rsqrt exp expm1 log log1p sin cos tanh sigmoid abs sign
    reciprocal clamp maximum minimum eq ne lt le gt ge logical_and logical_or logical_not where masked_fill masked_fill_ add_ sub_ mul_ div_
    sum mean prod amax amin max min any all argmax argmin cumsum var std norm isnan isinf isfinite nan_to_num
    matmul mm bmm mv dot addmm baddbmm outer linear
    view reshape transpose permute t swapaxes swapdims movedim unsqueeze squeeze expand expand_as flatten unflatten contiguous
    cat stack split chunk unbind narrow select index_select gather repeat repeat_interleave tril triu diagonal flip roll
    zeros ones full empty arange eye zeros_like ones_like full_like empty_like new_zeros new_ones new_full
    to float double half bfloat16 long int bool type_as clone detach copy_ fill_ zero_ requires_grad_
    softmax log_softmax layer_norm dropout embedding relu gelu
    item tolist T mT
    __add__ __radd__ __iadd__ __sub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __itruediv__ __neg__ __matmul__ __abs__
    __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __invert__ __and__ __or__ __getitem__ __setitem__ __bool__ __float__ __int__
""".split()
)
# Calls that switch the watching off, and those that start a thread.
BLINDING = frozenset(
    """
    setprofile _disable_current_modes _pop_mode _pop_mode_temporarily _pop_torch_function_stack _pop_torch_dispatch_stack
    _set_torch_function_state
    """.split()
)
STARTING = frozenset({"start_new_thread", "start_joinable_thread"})
# A learner's own function may be called softmax: only these packages count.
LIBRARIES = tuple("torch scipy jax tensorflow keras sklearn flax mlx cupy xformers autograd functorch tinygrad".split())


def library_files(path: Sequence[str]) -> tuple[str, ...]:
    """Where code lies that is nobody's answer: Python, what is installed, the grader. path: as sys.path.

    An environment may borrow its packages from another (`--system-site-packages`).
    """
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    packages = {folder for folder in path if os.path.basename(folder) in ("site-packages", "dist-packages")}
    return tuple(sorted({*folders, *packages, str(Path(__file__).resolve().parent.parent)}))


LIBRARY_FILES = library_files(sys.path)


def einsum_size(operands: tuple) -> tuple[int, int]:
    """(multiply-adds, elements of the largest operand) of an einsum call; (0, 0) where it forms no product.

    operands: as NumPy takes them: 'bqd,bkd->bqk', q, k; or the list form q, [0, 1, 2], k, [0, 3, 2], ...
    Multiply-adds are the product of the sizes of all indices, as in a plain nested loop.
    """
    try:
        if isinstance(operands[0], str):
            arrays = [np.asarray(item) for item in operands[1:]]
            terms: list[Any] = operands[0].replace(" ", "").partition("->")[0].replace("...", "\u2026").split(",")
        else:
            pairs = range(len(operands) // 2)
            arrays = [np.asarray(operands[2 * i]) for i in pairs]
            terms = [["\u2026" if item is Ellipsis else item for item in operands[2 * i + 1]] for i in pairs]
        if len(arrays) < 2:
            return 0, 0
        sizes: dict[Any, int] = {}
        for term, array in zip(terms, arrays, strict=True):
            for label, size in zip(_labels(list(term), array.ndim), array.shape, strict=True):
                sizes[label] = max(size, sizes.get(label, 1))
        return math.prod(sizes.values()), max(array.size for array in arrays)
    except (TypeError, ValueError, IndexError):
        return 0, 0


def _labels(labels: list[Any], ndim: int) -> list[Any]:
    """Gives the axes of an ellipsis names of their own, counted from the right as einsum aligns them."""
    if "\u2026" not in labels:
        return labels
    position = labels.index("\u2026")
    count = ndim - (len(labels) - 1)
    return labels[:position] + [("axis", count - i) for i in range(count)] + labels[position + 1 :]
