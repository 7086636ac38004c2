"""The `fewfire` command: one file per verb."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fewfire import __version__
from fewfire._errors import FewfireError, FewfireWarning
from fewfire.cli import bounds, demo, doctor, law, profile, report, reproduce, sweep
from fewfire.cli._output import bare, complain, in_words, never_fail_to_encode

app = typer.Typer(
    name="fewfire",
    help="Train networks on sparse Boolean functions in sweeps, report on the runs, and measure PyTorch models.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.command()(profile.profile)
app.command()(report.report)
app.command()(reproduce.reproduce)
app.add_typer(bounds.app, name="bounds")
app.add_typer(law.app, name="law")
app.add_typer(sweep.app, name="sweep")
for one in (app, bounds.app, law.app, sweep.app):
    one.info.cls = bare(TyperGroup)
    for command in one.registered_commands:
        command.cls = bare(TyperCommand)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fewfire {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Run the command line; errors and warnings of fewfire are printed as one line, and errors of the system."""
    never_fail_to_encode()
    show = warnings.showwarning

    def one_line(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
        if issubclass(category, FewfireWarning):
            complain(str(message), "warning:", "bold yellow")
        else:
            show(message, category, *where, **options)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = one_line
            app()
    except FewfireError as error:
        complain(str(error))
        sys.exit(2)
    except OSError as error:
        complain(in_words(error))
        sys.exit(2)
