"""A module whose import never ends; it writes the importing process's number to $HANGING_IMPORT first."""

import os
import time
from pathlib import Path

_path = Path(os.environ["HANGING_IMPORT"])
_path.with_suffix(".partial").write_text(str(os.getpid()))
_path.with_suffix(".partial").rename(_path)
while True:
    time.sleep(60)
