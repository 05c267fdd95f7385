"""`python -m selftest`: the commands that test groupquake itself."""

import click

from groupquake.cli import main
from selftest.explore.command import explore
from selftest.foresight import foresight
from selftest.mutants.command import mutants
from selftest.soak.command import soak
from selftest.synth.command import synth

NAME = "python -m selftest"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def selftest() -> None:
    """Test groupquake itself."""


for command in (explore, foresight, mutants, soak, synth):
    selftest.add_command(command)

if __name__ == "__main__":
    main(command=selftest, name=NAME)
