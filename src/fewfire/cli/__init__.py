"""The `fewfire` command: one file per verb."""

from __future__ import annotations

import sys

import typer
from typer.core import TyperCommand, TyperGroup

from fewfire import __version__
from fewfire._errors import FewfireError
from fewfire.cli import bounds, demo, doctor, law, profile, report, reproduce, sweep
from fewfire.cli._output import bare, complain, in_words, never_fail_to_encode

app = typer.Typer(
    name="fewfire",
    help="Two-layer networks in which little is active: learn sparse Boolean functions and see what it took.",
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
    """Run the command line; errors of fewfire and of the system are printed as one line, without a traceback."""
    never_fail_to_encode()
    try:
        app()
    except FewfireError as error:
        complain(str(error))
        sys.exit(2)
    except OSError as error:
        complain(in_words(error))
        sys.exit(2)
