"""Modules of others that are sparse autoencoders: their weights as `SparseEncoder` takes them.

They are known by their attributes, so nothing of the packages is imported:

    SAELens, dictionary_learning   W_enc (inputs, width), W_dec (width, outputs), b_enc, b_dec; with a k TopK, with a
                                   `threshold` JumpReLU, with b_gate, r_mag and b_mag gated
    dictionary_learning            encoder and decoder, two linear layers, and b_dec or `bias`
    torch.nn                       Sequential(Linear, ReLU) and Sequential(Linear, ReLU, Linear)

What is read is computed densely on a few rows and compared with what the module itself gives, with the input centred
and not: a module that computes something else (normalised inputs, rescaled values) is refused.
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
    return bool({"W_enc", "encoder"} & names) and bool({"W_dec", "decoder"} & names) and hasattr(module, "encode")


def read_module(module: Any) -> dict[str, Any]:
    """The arguments of the `SparseEncoder` that computes what a module does."""
    parts = _parts(check_model(module, ("cpu",)))
    got, last = f"a {type(module).__name__}", "pass its weights to fewfire.torch.SparseEncoder"
    if parts is None:
        rule = "must be laid out as an autoencoder of SAELens or dictionary_learning, or be Linear, ReLU (and Linear)"
        raise invalid("module", rule, got, last)
    with evaluating(module):
        for centre in (False, True):
            if _computes(module, parts, centre):
                return {**parts, "centre": centre}
    rule = "must compute what its attributes stand for, with the input centred or not"
    got += " that gives other values, as with normalised inputs or rescaled values"
    raise invalid("module", rule, got, f"fold what it does into its weights, and {last}")


def _parts(module: Any) -> dict[str, Any] | None:
    linear, layers = torch.nn.Linear, [getattr(module, name, None) for name in ("encoder", "decoder")]
    if isinstance(module, torch.nn.Sequential):
        inside = [part for part in module if not isinstance(part, torch.nn.Dropout | torch.nn.Identity)]
        if [type(part) for part in inside] not in ([linear, torch.nn.ReLU], [linear, torch.nn.ReLU, linear]):
            return None
        layers = [inside[0], inside[2] if len(inside) == 3 else None]
    elif not looks_like_autoencoder(module):
        return None
    biases = [getattr(module, name, None) for name in ("b_dec", "bias")] + [getattr(layers[1], "bias", None)]
    bias = next((own for own in biases if isinstance(own, torch.Tensor)), None)
    if isinstance(getattr(module, "W_enc", None), torch.Tensor):
        dec = getattr(module, "W_dec", None)
        parts = {"W_enc": module.W_enc.t(), "b_enc": getattr(module, "b_enc", None), "W_dec": dec, "b_dec": bias}
    elif isinstance(layers[0], linear) and isinstance(layers[1], linear | type(None)):
        dec = None if layers[1] is None else layers[1].weight.t()
        parts = {"W_enc": layers[0].weight, "b_enc": layers[0].bias, "W_dec": dec, "b_dec": bias}
    else:
        return None
    owners: list[Any] = [*(getattr(module, name, None) for name in ("activation_fn", "cfg")), module]
    k = next((int(own.k) for own in owners if getattr(own, "k", None)), None)
    if isinstance(getattr(module, "b_gate", None), torch.Tensor):
        return parts | {"activation": "gated", "b_enc": module.b_mag, "b_gate": module.b_gate, "r_mag": module.r_mag}
    if k is not None:
        return parts | {"activation": "topk", "k": k}
    if isinstance(getattr(module, "threshold", None), torch.Tensor):
        return parts | {"activation": "jumprelu", "threshold": module.threshold}
    return parts


def _computes(module: Any, parts: dict[str, Any], centre: bool) -> bool:
    """Whether the module gives what its parts stand for on rows on which something fires."""
    wide = {name: value.detach().float() for name, value in parts.items() if isinstance(value, torch.Tensor)}
    weight, zero = parts["W_enc"], torch.zeros(())
    middle = wide.get("b_dec", zero) if centre else zero
    if middle.shape not in ((), weight.shape[1:]):
        return False
    some = wide["W_enc"][torch.linspace(0, len(weight) - 1, _ROWS).long()]
    far = max([1.0, *(float(wide[name].abs().max()) for name in ("b_enc", "threshold", "b_gate") if name in wide)])
    noise = torch.randn(some.shape, generator=torch.Generator().manual_seed(0)) * some.std()
    size = 3 * far / some.norm(dim=1, keepdim=True).clamp_min(1e-6)
    x = (size * torch.nn.functional.normalize(some + noise, dim=1) + middle).to(weight.dtype)
    try:
        back = module(x)
        theirs = module.encode(x) if hasattr(module, "encode") else back if "W_dec" not in wide else module[:-1](x)
        theirs, back = theirs.float(), back.float()
        made = theirs @ wide["W_dec"] + wide.get("b_dec", zero) if "W_dec" in wide else back
        limit = theirs.abs() @ wide["W_dec"].abs() + wide.get("b_dec", zero).abs() if "W_dec" in wide else back.abs()
    except Exception:  # the module is the user's, and the rows are not what it was made for
        return False
    if theirs.shape != (_ROWS, len(weight)) or not bool(theirs.any()) or back.shape != made.shape:
        return False
    ours, edge = _dense((x.float() - middle) @ wide["W_enc"].t(), wide, parts)
    far_from = x.float().norm(dim=1, keepdim=True) + middle.norm()
    reach = far_from * wide["W_enc"].norm(dim=1) * wide.get("r_mag", zero).exp() + wide.get("b_enc", zero).abs()
    eps = 4 * torch.finfo(weight.dtype).eps
    slack = (eps + weight.shape[1] * 2.0**-24) * reach
    close = ((theirs - ours).abs() <= slack) | (edge.abs() <= slack)
    return bool(close.all()) and bool(((back - made).abs() <= (eps + len(weight) * 2.0**-24) * limit).all())


def _dense(product: Any, wide: dict[str, Any], parts: dict[str, Any]) -> tuple[Any, Any]:
    """The values of all features, and how far each is from where it would fire or not."""
    kind, bias = parts.get("activation", "relu"), wide.get("b_enc", torch.zeros(()))
    if kind == "gated":
        gate, m = product + wide["b_gate"], product * wide["r_mag"].exp() + bias
        return torch.where(gate > 0, m, 0).relu(), torch.minimum(gate.abs(), m.abs())
    z = product + bias
    limit = torch.zeros(())
    if kind == "jumprelu":
        limit = wide["threshold"].clamp_min(0)
    elif kind == "topk":
        limit = z.topk(min(parts["k"], z.shape[1]), dim=1).values[:, -1:].clamp_min(0)
    return torch.where((z > 0) & ((z >= limit) if kind == "topk" else (z > limit)), z, 0), z - limit
