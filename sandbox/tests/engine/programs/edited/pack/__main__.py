"""A pack whose policy tells two words of every stack: its own, and that of a module it imports."""

import os
from pathlib import Path

import limits
from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)

WORD = "first"


def tell(_args: StackValidationArgs, report: ReportViolation) -> None:
    report(f"pack={WORD} by {Path(f'/proc/{os.getppid()}/cmdline').read_text()}", None)
    report(f"limits={limits.WORD}", None)


PolicyPack("edited", [StackValidationPolicy("tell", "it is told", tell, EnforcementLevel.ADVISORY)])
