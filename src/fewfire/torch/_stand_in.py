"""Putting something in the place of a module's forward, and taking it out again; the module stays what it was."""

from __future__ import annotations

from typing import Any, NoReturn

from fewfire._errors import InvalidArgument


class _CannotLeave(InvalidArgument, AttributeError):
    """Also an AttributeError, so that `hasattr` may ask a stand-in for its code."""


class StandIn:
    """What stands in for the forward of a module."""

    def refuse_export(self) -> NoReturn:
        """Say that what was made sparse cannot leave this process."""
        raise _CannotLeave(
            "model must be dense for torch.export and torch.jit.script; got a sparsified model. "
            "Remedy: call fewfire.torch.densify(model) first."
        )

    @property
    def __code__(self) -> NoReturn:
        """What torch.export asks of the outermost forward before it begins."""
        self.refuse_export()


SCRIPTED = "__prepare_scriptable__"
"""What torch.jit.script calls on every module before it compiles any."""


def put_in(module: Any, forward: StandIn) -> None:
    """Stand in for the forward of a module."""
    module.forward = forward
    setattr(module, SCRIPTED, forward.refuse_export)


def take_out(module: Any) -> Any:
    """Give a module its own forward back; what stood in for it, if anything did. What others have put there stays."""
    vars(module).pop(SCRIPTED, None)
    return vars(module).pop("forward") if isinstance(vars(module).get("forward"), StandIn) else None
