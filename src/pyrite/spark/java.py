"""Checks that there is a Java for Spark before Spark starts: without one PySpark fails with a
message that does not help."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pyrite.errors import PyriteError

OLDEST = 17


def check_java() -> None:
    """Raises PyriteError, and says what to install, unless a Java is found that is new enough."""
    package = f"on Debian or Ubuntu: apt-get install openjdk-{OLDEST}-jre-headless"
    how = f"install Java {OLDEST} or newer ({package}), or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = (
            f"JAVA_HOME is '{home}', where there is no bin/java"
            if home
            else "there is no java on the PATH"
        )
        raise PyriteError(f"normal jobs run on Spark, which needs Java, and {where}; {how}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = java_version(said)
    if version is not None and version < OLDEST:
        raise PyriteError(
            f"normal jobs run on Spark, which needs Java {OLDEST}; '{java}' is Java {version}; "
            f"{how}"
        )


def java_version(said: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_version('java version "1.8.0_292"'), java_version("?")
    (8, None)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None
