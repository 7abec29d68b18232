"""Resolves the direct dependencies at the top of requirements.txt and pins all below them."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENTS = Path("requirements.txt")
MARK = "# Resolved from the above by `make lock`; do not edit below this line."
#: Come with some builds of torch and not with others; pinning them would break the CPU build.
HARDWARE = ("nvidia-", "cuda-", "triton")


def main() -> None:
    """Rewrite requirements.txt."""
    direct = REQUIREMENTS.read_text().split(MARK)[0].rstrip()
    names = {line.split("==")[0].split("[")[0].lower() for line in direct.splitlines()}
    pins = sorted(
        f"{name}=={version}"
        for name, version in resolve(direct).items()
        if name.lower() not in names and not name.lower().startswith(HARDWARE)
    )
    REQUIREMENTS.write_text("\n".join([direct, "", MARK, *pins, ""]))


def resolve(direct: str) -> dict[str, str]:
    """Return every package and version that pip would install for `direct`."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "direct.txt"), Path(folder, "report.json")
        wanted.write_text(direct)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed",
             "--report", str(report), "-r", str(wanted)],
            check=True,
        )  # fmt: skip
        installs = json.loads(report.read_text())["install"]
    return {
        item["metadata"]["name"]: item["metadata"]["version"].split("+")[0] for item in installs
    }


if __name__ == "__main__":
    main()
