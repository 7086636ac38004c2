"""Modules of others that are sparse autoencoders: their weights as `SparseEncoder` takes them.

They are known by their attributes, so nothing of the packages is imported:

    SAELens, dictionary_learning   W_enc (inputs, width), W_dec (width, outputs), b_dec, and b_enc; with a `threshold`
                                   JumpReLU, with a k TopK, with b_gate, r_mag and b_mag gated
    dictionary_learning            encoder and decoder, two linear layers, and b_dec or `bias`
    torch.nn                       Sequential(Linear, ReLU) and Sequential(Linear, ReLU, Linear)

What is read is then computed densely on a few rows and compared with what the module itself gives, with the input
centred and not: a module that computes something else (normalised inputs, rescaled values) is refused.
"""

from __future__ import annotations

from typing import Any

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.torch._batches import check_model, evaluating

torch: Any = require("torch", "torch", "fewfire.torch.SparseEncoder")

_ROWS = 8


def looks_like_autoencoder(module: Any) -> bool:
    """Whether a module has the attributes of a sparse autoencoder."""
    names = {name for name, _ in (*module.named_parameters(recurse=False), *module.named_children())}
    return ("W_enc" in names or "encoder" in names) and bool({"W_dec", "decoder"} & names) and hasattr(module, "encode")


def read_module(module: Any) -> dict[str, Any]:
    """The arguments of the `SparseEncoder` that computes what a module does."""
    parts = _parts(check_model(module, ("cpu",)))
    if parts is None:
        rule = "must be laid out as a sparse autoencoder of SAELens or dictionary_learning, or be a Sequential"
        remedy = "pass its weights to fewfire.torch.SparseEncoder"
        raise invalid("module", f"{rule} of Linear, ReLU and perhaps Linear", f"a {type(module).__name__}", remedy)
    with evaluating(module):
        for centre in (False, True):
            if (not centre or _can_centre(parts)) and _computes(module, parts, centre):
                return {**parts, "centre": centre}
    rule = "must compute what its attributes stand for, with the input centred or not"
    got = f"a {type(module).__name__} that gives other values, as with normalised inputs or rescaled values"
    raise invalid("module", rule, got, "fold what it does into its weights, and pass these to fewfire.torch.SparseEncoder")


def _can_centre(parts: dict[str, Any]) -> bool:
    return parts["b_dec"] is not None and parts["b_dec"].shape[0] == parts["W_enc"].shape[1]


def _parts(module: Any) -> dict[str, Any] | None:
    linear = torch.nn.Linear
    if isinstance(module, torch.nn.Sequential):
        inside = [part for part in module if not isinstance(part, torch.nn.Dropout | torch.nn.Identity)]
        if [type(part) for part in inside] not in ([linear, torch.nn.ReLU], [linear, torch.nn.ReLU, linear]):
            return None
        return _linear(inside[0], inside[2] if len(inside) == 3 else None, None)
    if not looks_like_autoencoder(module):
        return None
    encoder, decoder = getattr(module, "encoder", None), getattr(module, "decoder", None)
    bias = getattr(module, "b_dec", None)
    if isinstance(getattr(module, "W_enc", None), torch.Tensor):
        dec = getattr(module, "W_dec", None)
        parts = {"W_enc": module.W_enc.t(), "b_enc": getattr(module, "b_enc", None), "W_dec": dec, "b_dec": bias}
    elif isinstance(encoder, linear) and isinstance(decoder, linear):
        parts = _linear(encoder, decoder, getattr(module, "bias", None) if bias is None else bias)
    else:
        return None
    k = next((own for own in (_of(module, "activation_fn", "k"), _of(module, "cfg", "k"), _of(module, "k")) if own), None)
    if isinstance(getattr(module, "b_gate", None), torch.Tensor):
        kind = {"activation": "gated", "b_enc": module.b_mag, "b_gate": module.b_gate, "r_mag": module.r_mag}
    elif k is not None:
        kind = {"activation": "topk", "k": int(k)}
    elif isinstance(getattr(module, "threshold", None), torch.Tensor):
        kind = {"activation": "jumprelu", "threshold": module.threshold}
    else:
        kind = {}
    return {**parts, **kind}


def _linear(encoder: Any, decoder: Any, bias: Any) -> dict[str, Any]:
    dec = None if decoder is None else decoder.weight.t()
    bias = decoder.bias if decoder is not None and decoder.bias is not None else bias
    return {"W_enc": encoder.weight, "b_enc": encoder.bias, "W_dec": dec, "b_dec": bias}


def _of(module: Any, *path: str) -> Any:
    """An attribute of an attribute; None where there is none, or where it is a tensor that says no number."""
    for name in path:
        module = getattr(module, name, None)
    return module


def _computes(module: Any, parts: dict[str, Any], centre: bool) -> bool:
    """Whether the module gives what its parts stand for on rows on which something fires."""
    wide = {name: value.detach().float() for name, value in parts.items() if isinstance(value, torch.Tensor)}
    weight, zero = parts["W_enc"].detach(), torch.zeros(())
    some = weight[torch.linspace(0, len(weight) - 1, _ROWS).long()].float()
    far = max(1.0, *(float(wide[name].abs().max()) for name in ("b_enc", "threshold", "b_gate") if name in wide))
    size = 3 * far / some.norm(dim=1, keepdim=True).clamp_min(1e-6)
    seed = torch.Generator().manual_seed(0)
    rows = size * torch.nn.functional.normalize(some + torch.randn(some.shape, generator=seed) * some.std(), dim=1)
    x = (rows + wide["b_dec"] if centre else rows).to(weight.dtype)
    try:
        theirs = module[:-1](x) if "W_dec" in wide and isinstance(module, torch.nn.Sequential) else None
        theirs = theirs if theirs is not None else getattr(module, "encode", module)(x)
        back = module(x) if "W_dec" in wide else None
    except Exception:  # the module is the user's, and the rows are not what it was made for
        return False
    if not isinstance(theirs, torch.Tensor) or theirs.shape != (_ROWS, len(weight)) or not bool(theirs.any()):
        return False
    inner = x.float() - (wide["b_dec"] if centre else zero)
    product = inner @ wide["W_enc"].t()
    ours, edge = _dense(product, wide, parts)
    eps = torch.finfo(weight.dtype).eps
    bound = x.float().norm(dim=1, keepdim=True) + (wide["b_dec"].norm() if centre else zero)
    size = bound * wide["W_enc"].norm(dim=1) * wide.get("r_mag", zero).exp() + wide.get("b_enc", zero).abs()
    slack = (4 * eps + weight.shape[1] * 2.0**-24) * size
    close = ((theirs.float() - ours).abs() <= slack) | (edge.abs() <= slack)
    if not bool(close.all()):
        return False
    if back is None:
        return True
    made = theirs.float() @ wide["W_dec"] + wide.get("b_dec", zero)
    limit = theirs.float().abs() @ wide["W_dec"].abs() + wide.get("b_dec", zero).abs()
    most = (4 * eps + len(weight) * 2.0**-24) * limit
    return isinstance(back, torch.Tensor) and back.shape == made.shape and bool(((back.float() - made).abs() <= most).all())


def _dense(product: Any, wide: dict[str, Any], parts: dict[str, Any]) -> tuple[Any, Any]:
    """The values of all features, and how far each is from where it would fire or not."""
    z = product + wide.get("b_enc", torch.zeros(()))
    kind = parts.get("activation", "relu")
    if kind == "gated":
        gate, m = product + wide["b_gate"], product * wide["r_mag"].exp() + wide.get("b_enc", torch.zeros(()))
        return torch.where(gate > 0, m, 0).relu(), torch.minimum(gate.abs(), m.abs())
    if kind == "jumprelu":
        limit = wide["threshold"].clamp_min(0)
        return torch.where(z > limit, z, 0), z - limit
    if kind == "topk":
        least = z.topk(min(parts["k"], z.shape[1]), dim=1).values[:, -1:].clamp_min(0)
        return torch.where((z >= least) & (z > 0), z, 0), z - least
    return z.relu(), z
