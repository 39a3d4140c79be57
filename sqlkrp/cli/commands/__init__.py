"""The commands: one file each, and the one table of their names."""

from sqlkrp.cli.command import Command
from sqlkrp.cli.commands import (
    dbt,
    distortion,
    draw,
    explain,
    export,
    featurize,
    inspect,
    maps,
    report,
    run,
    score,
    shorten,
    sql,
    tables,
    train,
    verify,
)

__all__ = ["COMMANDS"]

#: In the order of the help.
COMMANDS: dict[str, Command] = {
    "featurize": featurize.COMMAND,
    "draw": draw.COMMAND,
    "maps": maps.COMMAND,
    "sql": sql.COMMAND,
    "tables": tables.COMMAND,
    "run": run.COMMAND,
    "export": export.COMMAND,
    "dbt": dbt.COMMAND,
    "train": train.COMMAND,
    "score": score.COMMAND,
    "explain": explain.COMMAND,
    "shorten": shorten.COMMAND,
    "verify": verify.COMMAND,
    "distortion": distortion.COMMAND,
    "report": report.COMMAND,
    "inspect": inspect.COMMAND,
}
