"""What Chromium makes of the report of a fleet of 200 tenants; its pictures are for people to look at.

`make prove WHAT=report` leaves them in `.sandbox/prove/report/`: desktop and phone, light and dark.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from operations.sandbox.report import write
from tests.operations.sandbox.test_report import fleet_of
from tests.prove import KEPT
from tests.support.proving import PROVES, tried

pytestmark = pytest.mark.built

TENANTS = 200
SIZES = {"desktop": (1280, 1600), "phone": (390, 1600)}

OPEN = re.compile(r'<details class="tenant[^>]*data-name="([^"]*)"[^>]* open="">')

Browser: TypeAlias = Callable[..., str]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(fleet_of(TENANTS), tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Open a page: arguments of the browser → what it prints."""
    program = shutil.which("chromium")
    if not PROVES or program is None:
        assert not PROVES, "no chromium is on PATH; Debian and Ubuntu: apt install chromium fonts-dejavu-core"
        pytest.skip("make prove WHAT=report looks at the report in a browser")
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path}",
    )

    def look(*arguments: str) -> str:
        tried("views of the report in Chromium")
        command = [program, *options, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout

    return look


def shown(document: str) -> list[str]:
    """Return the tenants that are seen, in their order."""
    rows = re.findall(r'<details class="tenant[^>]*>', document)
    return [re.findall('data-name="(.*?)"', row)[0] for row in rows if ' hidden=""' not in row]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [*SIZES])
def test_the_report_fits_any_screen(browser: Browser, page: str, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    picture = KEPT / "report" / f"{size}-{scheme}.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.unlink(missing_ok=True)
    dark = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    browser(*dark, f"--window-size={width},{height}", f"--screenshot={picture}", page)
    assert picture.stat().st_size > 10_000


def test_a_link_to_a_tenant_opens_it(browser: Browser, page: str) -> None:
    assert OPEN.findall(browser("--dump-dom", page)) == []
    assert OPEN.findall(browser("--dump-dom", f"{page}#tenant-tenant-003")) == ["tenant-003"]


def test_tenants_are_found_and_sorted(browser: Browser, page: str) -> None:
    without = [f"tenant-{number:03}" for number in range(0, TENANTS, 3)]
    assert shown(browser("--dump-dom", page))[: len(without)] == without
    assert shown(browser("--dump-dom", f"{page}#q=TENANT-19")) == [
        "tenant-192",
        "tenant-195",
        "tenant-198",
        *(f"tenant-{number}" for number in range(190, 200) if number % 3),
    ]
    found = browser("--dump-dom", f"{page}#q=aws-tenant-007")
    assert shown(found) == ["tenant-007"]
    assert f"1 of {TENANTS} tenants" in found
    by_name = shown(browser("--dump-dom", f"{page}#sort=name"))
    assert by_name == sorted(by_name)
    assert shown(browser("--dump-dom", f"{page}#sort=accounts"))[0] == "tenant-001"
